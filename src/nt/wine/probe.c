/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Compiled when a build is set up: can winegcc, with Wine's headers?
 */
#include <windows.h>
#include <winternl.h>

int main(void)
{
    return sizeof(TEB) == 0;
}
