/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcbd.conf, any bytes: refused with a place in the file, or taken; what is taken and written
 * again parses to the same.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct prcbd_config config, again;
    struct prcb_error err = {0};
    char *text = malloc(size), written[8192];
    size_t length;
    int code;

    assert(text || !size);
    if (size)
        memcpy(text, data, size);
    memset(&config, 0xa5, sizeof(config));
    code = prcbd_config_parse(text, size, "f", &config, &err);
    free(text);
    if (code) {
        assert(err.code == code && !strncmp(err.text, "f:", 2));
        return 0;
    }
    length = prcbd_config_write(&config, false, written, sizeof(written));
    assert(length < sizeof(written));
    assert(!prcbd_config_parse(written, length, "g", &again, &err));
    assert(!memcmp(&config, &again, sizeof(config)));
    return 0;
}
