/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Version selection: any text either finds a version or is refused with words, and the name of a
 * version that was found finds the same again, if it names it fully.
 */
#include <stdlib.h>
#include <string.h>

#include <prcb/layout.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse(const char *text, enum prcb_arch arch)
{
    struct prcb_layout_version found = {.size = sizeof(found)}, again = {.size = sizeof(again)};
    struct prcb_error err = {0};
    char note[PRCB_LAYOUT_NOTE];

    if (prcb_layout_version_parse(text, arch, &found, note, &err)) {
        if (!err.code || !err.text[0])
            abort();
        return;
    }
    if (strnlen(note, sizeof(note)) == sizeof(note))
        abort();
    if (prcb_layout_version_parse(found.name, arch, &again, note, &err))
        abort();
    if (again.build != found.build)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    parse(text, PRCB_ARCH_X86);
    parse(text, PRCB_ARCH_X64);
    free(text);
    return 0;
}
