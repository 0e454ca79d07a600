/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The memory of a process that says it is a JVM: where its tables have the members of structures,
 * then its pages (made_memory.h).
 */
#include "java.h"
#include "made_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct runtime_process process = {.file = "libjvm.so"};
    uint16_t members[JAVA_MEMBERS];

    if (size < sizeof(members) + 1)
        return 0;
    memcpy(members, data, sizeof(members));
    java_members = members;
    read_made(&runtime_java, &process,
              (struct input){data + sizeof(members), size - sizeof(members)});
    return 0;
}
