/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A program that keeps the calls it looks up in variables of the same names, as an extension module
 * of a scripting language does. With SHARED it is such a module, whose names the dynamic linker
 * prefers to the library's only if the program itself was linked with -rdynamic, or the module is
 * opened for all. It prints what the calls give.
 */
#include <windows.h>
#include <stdio.h>

typedef LONG(NTAPI *query)(ULONG, PVOID, ULONG, PULONG);
typedef LONG(NTAPI *power)(ULONG, PVOID, ULONG, PVOID, ULONG);

query NtQuerySystemInformation;
power NtPowerInformation;
FARPROC RtlNtStatusToDosError;

int use_names(void);

int use_names(void)
{
    HMODULE module = LoadLibraryA("ntdll.dll");
    char times[0x30];
    ULONG length = 0;
    LONG status;

    NtQuerySystemInformation = (query)GetProcAddress(module, "NtQuerySystemInformation");
    NtPowerInformation = (power)GetProcAddress(module, "NtPowerInformation");
    RtlNtStatusToDosError = GetProcAddress(module, "RtlNtStatusToDosError");
    if ((PVOID)NtQuerySystemInformation == (PVOID)&NtQuerySystemInformation ||
        (PVOID)NtPowerInformation == (PVOID)&NtPowerInformation ||
        (PVOID)RtlNtStatusToDosError == (PVOID)&RtlNtStatusToDosError) {
        printf("a variable of this program\n");
        return 1;
    }
    status = NtQuerySystemInformation(8, times, sizeof(times), &length);
    printf("status 0x%x length 0x%x\n", (unsigned)status, (unsigned)length);
    return status != 0;
}

#ifndef SHARED
int main(void)
{
    return use_names();
}
#endif
