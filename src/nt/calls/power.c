/* SPDX-License-Identifier: BSD-2-Clause
 *
 * NtPowerInformation: the two levels about processors.
 */
#include <string.h>

#include "query.h"

static NTSTATUS fill(uint32_t group, char *output, uint32_t length)
{
    const uint32_t size = sizeof(PROCESSOR_POWER_INFORMATION);
    uint32_t first, count;
    NTSTATUS status = nt_view_look(true);

    if (status)
        return status;
    if (!nt_group(group, &first, &count))
        return nt_fail(STATUS_INVALID_PARAMETER, "no processor group %u", group);
    if (length < count * size)
        return nt_fail(STATUS_BUFFER_TOO_SMALL, "%u bytes; it takes %u", length, count * size);
    status = nt_view_read(first, count);
    for (uint32_t i = 0; i < count && !status; i++) {
        struct nt_row row = {.record = nt_view_record(first + i), .cpu = nt_view_cpu(first + i)};
        union nt_element element = {.power_information = {0}};

        nt_fill_power_information(&row, &element);
        memcpy(output + (size_t)i * size, &element, size);
    }
    return status;
}

static NTSTATUS take_input(uint32_t level, const void *input, uint32_t length, uint16_t *ret)
{
    if (level == PRCB_NT_PROCESSOR_INFORMATION_EX)
        return input ? nt_take_group(input, length, ret)
                     : nt_fail(STATUS_INVALID_PARAMETER, "no group is named");
    if (input || length)
        return nt_fail(STATUS_INVALID_PARAMETER, "level %u has no input", level);
    *ret = (uint16_t)nt_current_group();
    return STATUS_SUCCESS;
}

NTSTATUS prcb_NtPowerInformation(uint32_t InformationLevel, void *InputBuffer,
                                 uint32_t InputBufferLength, void *OutputBuffer,
                                 uint32_t OutputBufferLength)
{
    uint16_t group = 0;
    NTSTATUS status;

    if (InformationLevel != PRCB_NT_PROCESSOR_INFORMATION &&
        InformationLevel != PRCB_NT_PROCESSOR_INFORMATION_EX)
        return nt_fail(STATUS_NOT_IMPLEMENTED, "level %u is not one of those that are here",
                       InformationLevel);
    if (!OutputBuffer)
        return nt_fail(STATUS_INVALID_PARAMETER, "no place for the answer");
    status = take_input(InformationLevel, InputBuffer, InputBufferLength, &group);
    if (!status)
        status = nt_probe_write(OutputBuffer, OutputBufferLength, sizeof(uint32_t));
    if (status)
        return status;
    nt_enter();
    status = fill(group, OutputBuffer, OutputBufferLength);
    nt_leave();
    return status;
}

NTSTATUS prcb_ZwPowerInformation(uint32_t InformationLevel, void *InputBuffer,
                                 uint32_t InputBufferLength, void *OutputBuffer,
                                 uint32_t OutputBufferLength)
{
    return prcb_NtPowerInformation(InformationLevel, InputBuffer, InputBufferLength, OutputBuffer,
                                   OutputBufferLength);
}
