/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Words: bug check codes (the names of bugcodes.h), releases by build, arm64 implementers, how
 * things were found.
 */
#include "inside.h"

struct named {
    uint32_t number;
    const char *name;
};

static const struct named bugchecks[] = {
    {0x01, "APC_INDEX_MISMATCH"},
    {0x0A, "IRQL_NOT_LESS_OR_EQUAL"},
    {0x12, "TRAP_CAUSE_UNKNOWN"},
    {0x18, "REFERENCE_BY_POINTER"},
    {0x19, "BAD_POOL_HEADER"},
    {0x1A, "MEMORY_MANAGEMENT"},
    {0x1E, "KMODE_EXCEPTION_NOT_HANDLED"},
    {0x20, "KERNEL_APC_PENDING_DURING_EXIT"},
    {0x22, "FILE_SYSTEM"},
    {0x23, "FAT_FILE_SYSTEM"},
    {0x24, "NTFS_FILE_SYSTEM"},
    {0x31, "PHASE0_INITIALIZATION_FAILED"},
    {0x32, "PHASE1_INITIALIZATION_FAILED"},
    {0x35, "NO_MORE_IRP_STACK_LOCATIONS"},
    {0x3B, "SYSTEM_SERVICE_EXCEPTION"},
    {0x3D, "INTERRUPT_EXCEPTION_NOT_HANDLED"},
    {0x3F, "NO_MORE_SYSTEM_PTES"},
    {0x44, "MULTIPLE_IRP_COMPLETE_REQUESTS"},
    {0x48, "CANCEL_STATE_IN_COMPLETED_IRP"},
    {0x4A, "IRQL_GT_ZERO_AT_SYSTEM_SERVICE"},
    {0x4D, "NO_PAGES_AVAILABLE"},
    {0x4E, "PFN_LIST_CORRUPT"},
    {0x50, "PAGE_FAULT_IN_NONPAGED_AREA"},
    {0x51, "REGISTRY_ERROR"},
    {0x5C, "HAL_INITIALIZATION_FAILED"},
    {0x6B, "PROCESS1_INITIALIZATION_FAILED"},
    {0x74, "BAD_SYSTEM_CONFIG_INFO"},
    {0x76, "PROCESS_HAS_LOCKED_PAGES"},
    {0x77, "KERNEL_STACK_INPAGE_ERROR"},
    {0x7A, "KERNEL_DATA_INPAGE_ERROR"},
    {0x7B, "INACCESSIBLE_BOOT_DEVICE"},
    {0x7C, "BUGCODE_NDIS_DRIVER"},
    {0x7E, "SYSTEM_THREAD_EXCEPTION_NOT_HANDLED"},
    {0x7F, "UNEXPECTED_KERNEL_MODE_TRAP"},
    {0x80, "NMI_HARDWARE_FAILURE"},
    {0x8E, "KERNEL_MODE_EXCEPTION_NOT_HANDLED"},
    {0x92, "UP_DRIVER_ON_MP_SYSTEM"},
    {0x93, "INVALID_KERNEL_HANDLE"},
    {0x96, "INVALID_WORK_QUEUE_ITEM"},
    {0x9C, "MACHINE_CHECK_EXCEPTION"},
    {0x9F, "DRIVER_POWER_STATE_FAILURE"},
    {0xA0, "INTERNAL_POWER_ERROR"},
    {0xA5, "ACPI_BIOS_ERROR"},
    {0xAB, "SESSION_HAS_VALID_POOL_ON_EXIT"},
    {0xBE, "ATTEMPTED_WRITE_TO_READONLY_MEMORY"},
    {0xC1, "SPECIAL_POOL_DETECTED_MEMORY_CORRUPTION"},
    {0xC2, "BAD_POOL_CALLER"},
    {0xC4, "DRIVER_VERIFIER_DETECTED_VIOLATION"},
    {0xC5, "DRIVER_CORRUPTED_EXPOOL"},
    {0xC7, "TIMER_OR_DPC_INVALID"},
    {0xC9, "DRIVER_VERIFIER_IOMANAGER_VIOLATION"},
    {0xCA, "PNP_DETECTED_FATAL_ERROR"},
    {0xCE, "DRIVER_UNLOADED_WITHOUT_CANCELLING_PENDING_OPERATIONS"},
    {0xD1, "DRIVER_IRQL_NOT_LESS_OR_EQUAL"},
    {0xD5, "DRIVER_PAGE_FAULT_IN_FREED_SPECIAL_POOL"},
    {0xD6, "DRIVER_PAGE_FAULT_BEYOND_END_OF_ALLOCATION"},
    {0xDA, "SYSTEM_PTE_MISUSE"},
    {0xDE, "POOL_CORRUPTION_IN_FILE_AREA"},
    {0xE2, "MANUALLY_INITIATED_CRASH"},
    {0xE4, "WORKER_INVALID"},
    {0xE6, "DRIVER_VERIFIER_DMA_VIOLATION"},
    {0xEA, "THREAD_STUCK_IN_DEVICE_DRIVER"},
    {0xEF, "CRITICAL_PROCESS_DIED"},
    {0xF4, "CRITICAL_OBJECT_TERMINATION"},
    {0xF5, "FLTMGR_FILE_SYSTEM"},
    {0xF7, "DRIVER_OVERRAN_STACK_BUFFER"},
    {0xFC, "ATTEMPTED_EXECUTE_OF_NOEXECUTE_MEMORY"},
    {0xFE, "BUGCODE_USB_DRIVER"},
    {0x101, "CLOCK_WATCHDOG_TIMEOUT"},
    {0x109, "CRITICAL_STRUCTURE_CORRUPTION"},
    {0x10D, "WDF_VIOLATION"},
    {0x10E, "VIDEO_MEMORY_MANAGEMENT_INTERNAL"},
    {0x113, "VIDEO_DXGKRNL_FATAL_ERROR"},
    {0x116, "VIDEO_TDR_FAILURE"},
    {0x117, "VIDEO_TDR_TIMEOUT_DETECTED"},
    {0x119, "VIDEO_SCHEDULER_INTERNAL_ERROR"},
    {0x11A, "EM_INITIALIZATION_FAILURE"},
    {0x124, "WHEA_UNCORRECTABLE_ERROR"},
    {0x127, "PAGE_NOT_ZERO"},
    {0x12B, "FAULTY_HARDWARE_CORRUPTED_PAGE"},
    {0x133, "DPC_WATCHDOG_VIOLATION"},
    {0x139, "KERNEL_SECURITY_CHECK_FAILURE"},
    {0x13A, "KERNEL_MODE_HEAP_CORRUPTION"},
    {0x144, "BUGCODE_USB3_DRIVER"},
    {0x14F, "PDC_WATCHDOG_TIMEOUT"},
    {0x154, "UNEXPECTED_STORE_EXCEPTION"},
    {0x157, "KERNEL_THREAD_PRIORITY_FLOOR_VIOLATION"},
    {0x15F, "CONNECTED_STANDBY_WATCHDOG_TIMEOUT_LIVEDUMP"},
    {0x161, "LIVE_SYSTEM_DUMP"},
    {0x162, "KERNEL_AUTO_BOOST_INVALID_LOCK_RELEASE"},
    {0x18B, "SECURE_KERNEL_ERROR"},
    {0x192, "KERNEL_AUTO_BOOST_LOCK_ACQUISITION_WITH_RAISED_IRQL"},
    {0x1A0, "TTM_WATCHDOG_TIMEOUT"},
    {0x1C6, "FAST_ERESOURCE_PRECONDITION_VIOLATION"},
    {0x1C7, "STORE_DATA_STRUCTURE_CORRUPTION"},
    {0x1C8, "MANUALLY_INITIATED_POWER_BUTTON_HOLD"},
    {0x1CA, "SYNTHETIC_WATCHDOG_TIMEOUT"},
    {0x1CC, "EXRESOURCE_TIMEOUT_LIVEDUMP"},
    {0x1000007E, "SYSTEM_THREAD_EXCEPTION_NOT_HANDLED_M"},
    {0x1000007F, "UNEXPECTED_KERNEL_MODE_TRAP_M"},
    {0x1000008E, "KERNEL_MODE_EXCEPTION_NOT_HANDLED_M"},
    {0x100000EA, "THREAD_STUCK_IN_DEVICE_DRIVER_M"},
    {0xC000021A, "WINLOGON_FATAL_ERROR"},
    {0xDEADDEAD, "MANUALLY_INITIATED_CRASH1"},
};

static const struct named releases[] = {
    {2195, "Windows 2000"},
    {2600, "Windows XP"},
    {3790, "Windows Server 2003 or XP x64"},
    {6000, "Windows Vista"},
    {6001, "Windows Vista SP1 or Server 2008"},
    {6002, "Windows Vista SP2 or Server 2008 SP2"},
    {6003, "Windows Server 2008 SP2"},
    {7600, "Windows 7 or Server 2008 R2"},
    {7601, "Windows 7 SP1 or Server 2008 R2 SP1"},
    {9200, "Windows 8 or Server 2012"},
    {9600, "Windows 8.1 or Server 2012 R2"},
    {9841, "Windows 10 preview 9841"},
    {10240, "Windows 10 1507"},
    {10586, "Windows 10 1511"},
    {14393, "Windows 10 1607 or Server 2016"},
    {15063, "Windows 10 1703"},
    {16299, "Windows 10 1709"},
    {17134, "Windows 10 1803"},
    {17763, "Windows 10 1809 or Server 2019"},
    {18362, "Windows 10 1903 or 1909"},
    {18363, "Windows 10 1909"},
    {19041, "Windows 10 2004 to 22H2"},
    {19042, "Windows 10 20H2"},
    {19043, "Windows 10 21H1"},
    {19044, "Windows 10 21H2"},
    {19045, "Windows 10 22H2"},
    {20348, "Windows Server 2022"},
    {22000, "Windows 11 21H2"},
    {22621, "Windows 11 22H2"},
    {22631, "Windows 11 23H2"},
    {25398, "Windows Server 23H2"},
    {26100, "Windows 11 24H2 or Server 2025"},
    {26200, "Windows 11 25H2"},
};

static const struct named implementers[] = {
    {0x41, "Arm"},       {0x42, "Broadcom"}, {0x43, "Cavium"},     {0x46, "Fujitsu"},
    {0x48, "HiSilicon"}, {0x4e, "NVIDIA"},   {0x50, "Ampere APM"}, {0x51, "Qualcomm"},
    {0x53, "Samsung"},   {0x56, "Marvell"},  {0x61, "Apple"},      {0x6d, "Microsoft"},
    {0xc0, "Ampere"},
};

static const char *find(const struct named *table, size_t count, uint32_t number)
{
    for (size_t i = 0; i < count; i++) {
        if (table[i].number == number)
            return table[i].name;
    }
    return NULL;
}

/* The flag 0x10000000 marks the same bug check as reported by a minidump (the "_M" names). */
const char *bugcheck_name(uint32_t code)
{
    const char *name = find(bugchecks, ARRAY_SIZE(bugchecks), code);

    if (name || !(code & 0x10000000))
        return name;
    return find(bugchecks, ARRAY_SIZE(bugchecks), code & ~0x10000000u);
}

const char *release_name(const struct header *header)
{
    return find(releases, ARRAY_SIZE(releases), header->minor);
}

const char *implementer_name(uint32_t code)
{
    return find(implementers, ARRAY_SIZE(implementers), code);
}

const char *prcb_dump_found_name(enum prcb_dump_found found)
{
    static const char *const names[] = {NULL, "catalog", "kdbg", "landmark", "symbols"};

    return (size_t)found < ARRAY_SIZE(names) ? names[found] : NULL;
}
