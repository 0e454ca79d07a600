/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Names of interrupts: lines as x86-64 and arm64 have them.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "interrupt_name.h"

static const char lines[] =
    "           CPU0       CPU1       \n"
    "  0:         38          0   IO-APIC   2-edge      timer\n"
    "  9:          0          0   IO-APIC   9-fasteoi   acpi\n"
    " 19:        120        331   IO-APIC  19-fasteoi   uhci_hcd:usb1, ahci\n"
    " 20:          7          0   IO-APIC  20-fasteoi \n" /* its driver has gone */
    " 26:          1          0  IO-APIC   4-edge      \n"
    " 27:          0          0  PCI-MSI  27-edge      PCIe PME, pciehp\n"
    " 45:          0     913577 PCI-MSIX-0000:00:02.0   1-edge      nvme0q1\n"
    " 52:      10342       9982     GICv3  27 Level     arch_timer\n"
    "145:          1          2  PCI-MSI 145-edge      eth0-TxRx-5\n"
    "450:          3          4  PCI-MSI 450-edge      far\n"
    "NMI:          0          0   Non-maskable interrupts\n"
    "LOC:    1313961     923340   Local timer interrupts\n"
    "ERR:          5\n";

static void is_name(const char *list, uint32_t number, const char *name)
{
    char found[64] = "before";

    assert_int_equal(interrupt_name(list, number, found, sizeof(found)), *name != '\0');
    assert_string_equal(found, name);
}

static void test_names(void **state)
{
    char path[] = "/tmp/prcb-interrupts-XXXXXX", cut[5];
    int fd = mkostemp(path, O_CLOEXEC);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, lines, sizeof(lines) - 1), sizeof(lines) - 1);
    close(fd);
    is_name(path, 0, "timer");
    is_name(path, 9, "acpi");
    is_name(path, 19, "uhci_hcd:usb1, ahci");
    is_name(path, 20, "");
    is_name(path, 26, "");
    is_name(path, 27, "PCIe PME, pciehp");
    is_name(path, 45, "nvme0q1");
    is_name(path, 52, "arch_timer");
    is_name(path, 145, "eth0-TxRx-5");
    is_name(path, 4, ""); /* no other's whose number begins or ends so */
    is_name(path, 5, "");
    is_name(path, UINT32_MAX, "");
    assert_true(interrupt_name(path, 45, cut, sizeof(cut)));
    assert_string_equal(cut, "nvme");
    assert_int_equal(unlink(path), 0);
    is_name(path, 0, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
