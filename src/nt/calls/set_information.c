/* SPDX-License-Identifier: BSD-2-Clause
 *
 * NtSetSystemInformation: the classes that can be set, and what is checked for all of them.
 */
#include "inside.h"

const struct nt_set_class nt_set_classes[] = {
    {0x1c, 0x08, .set = nt_set_time_adjustment},
    {0x1f, 0, .set_sized = nt_set_trace},
    {0x81, sizeof(SYSTEM_PROCESSOR_PROFILE_CONTROL_AREA), .kernel_only = true, .writes = true,
     .set = nt_set_profile_area},
};
const size_t nt_set_class_count = sizeof(nt_set_classes) / sizeof(nt_set_classes[0]);

static const struct nt_set_class *find(uint32_t number)
{
    for (size_t i = 0; i < nt_set_class_count; i++) {
        if (nt_set_classes[i].information_class == number)
            return &nt_set_classes[i];
    }
    return NULL;
}

NTSTATUS prcb_nt_set_system_information(uint32_t SystemInformationClass, void *SystemInformation,
                                        uint32_t SystemInformationLength,
                                        enum prcb_nt_mode PreviousMode)
{
    const struct nt_set_class *row = find(SystemInformationClass);
    NTSTATUS status = nt_probe_read(SystemInformation, SystemInformationLength, sizeof(uint32_t));

    if (status)
        return status;
    if (!row)
        return nt_fail(STATUS_INVALID_INFO_CLASS, "class 0x%x cannot be set",
                       SystemInformationClass);
    if (row->kernel_only && PreviousMode != PRCB_NT_KERNEL_MODE)
        return nt_fail(STATUS_ACCESS_DENIED, "class 0x%x is for kernel mode only",
                       SystemInformationClass);
    if (row->set_sized)
        return row->set_sized(SystemInformation, SystemInformationLength, PreviousMode);
    if (SystemInformationLength != row->length)
        return nt_fail(STATUS_INFO_LENGTH_MISMATCH, "class 0x%x has %u bytes, not %u",
                       SystemInformationClass, row->length, SystemInformationLength);
    if (row->writes)
        status = nt_probe_write(SystemInformation, SystemInformationLength, sizeof(uint32_t));
    return status ? status : row->set(SystemInformation, PreviousMode);
}

NTSTATUS prcb_NtSetSystemInformation(uint32_t SystemInformationClass, void *SystemInformation,
                                     uint32_t SystemInformationLength)
{
    return prcb_nt_set_system_information(SystemInformationClass, SystemInformation,
                                          SystemInformationLength, PRCB_NT_KERNEL_MODE);
}

NTSTATUS prcb_ZwSetSystemInformation(uint32_t SystemInformationClass, void *SystemInformation,
                                     uint32_t SystemInformationLength)
{
    return prcb_NtSetSystemInformation(SystemInformationClass, SystemInformation,
                                       SystemInformationLength);
}
