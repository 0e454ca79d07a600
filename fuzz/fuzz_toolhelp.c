/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What procfs says of other people's processes, as Toolhelp's lists take it: a line of stat, then
 * lines of maps, whose names anybody may choose. All rows are then asked for in both widths.
 */
#include "../src/nt/compat/toolhelp.c"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

BOOL fail(DWORD code)
{
    (void)code;
    return FALSE;
}

static void take_maps(struct snapshot *s, char *text)
{
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        assert(take_mapping(s, 1, line));
}

static void ask(struct snapshot *s)
{
    PROCESSENTRY32W process = {.dwSize = sizeof(process)};
    PROCESSENTRY32 narrow = {.dwSize = sizeof(narrow)};
    MODULEENTRY32W module = {.dwSize = sizeof(module)};
    MODULEENTRY32 plain = {.dwSize = sizeof(plain)};
    size_t count = 0;

    for (BOOL more = Process32FirstW(s, &process); more; more = Process32NextW(s, &process))
        assert(!process.szExeFile[NAME_SIZE]);
    Process32First(s, &narrow);
    for (BOOL more = Module32FirstW(s, &module); more; more = Module32NextW(s, &module))
        count++;
    assert(count == s->count[MODULES]);
    for (BOOL more = Module32First(s, &plain); more; more = Module32Next(s, &plain))
        assert(plain.szExePath[0] == '/');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct snapshot s = {.flags = TH32CS_SNAPPROCESS};
    char *text = malloc(size + 1), *rest;
    struct process p = {0};

    assert(text);
    memcpy(text, data, size);
    text[size] = '\0';
    rest = strchr(text, '\n');
    if (rest)
        *rest++ = '\0';
    if (take_stat(text, &p))
        assert(!array_append(s.processes, s.count[PROCESSES], p));
    if (rest)
        take_maps(&s, rest);
    snapshots = &s;
    ask(&s);
    snapshots = NULL;
    free(s.processes);
    free(s.modules);
    free(text);
    return 0;
}
