/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The web configuration of prcb-exporter, any bytes: refused with a reason, or taken; what is taken
 * asks for nothing that it does not name the files of.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "web_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct web_config config;
    struct prcb_error err = {0};

    if (web_config_parse((const char *)data, size, "/f", &config, &err)) {
        assert(err.code && *err.text);
    } else {
        assert(!config.tls || (config.cert_file && config.key_file));
        assert(!config.client_required || config.client_ca_file);
        for (size_t i = 0; i < config.user_count; i++)
            assert(strlen(config.users[i].hash) == 60);
    }
    web_config_free(&config);
    return 0;
}
