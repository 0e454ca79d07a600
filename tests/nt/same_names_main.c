/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Opens the shared form of same_names.c for all to see, and lets it use its names.
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *module = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
    int (*use_names)(void) = (int (*)(void))(module ? dlsym(module, "use_names") : NULL);

    if (!use_names) {
        printf("%s\n", dlerror());
        return 1;
    }
    return use_names();
}
