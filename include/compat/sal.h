/* SPDX-License-Identifier: BSD-2-Clause
 *
 * <sal.h> for programs written for Windows: annotations of parameters, which say
 * nothing to this compiler.
 */
#ifndef PRCB_COMPAT_SAL_H
#define PRCB_COMPAT_SAL_H

#include "basetsd.h"

#define _In_
#define _In_opt_
#define _In_z_
#define _In_opt_z_
#define _In_range_(low, high)
#define _In_reads_(size)
#define _In_reads_opt_(size)
#define _In_reads_bytes_(size)
#define _In_reads_bytes_opt_(size)
#define _Out_
#define _Out_opt_
#define _Out_writes_(size)
#define _Out_writes_opt_(size)
#define _Out_writes_to_(size, count)
#define _Out_writes_bytes_(size)
#define _Out_writes_bytes_opt_(size)
#define _Out_writes_bytes_to_opt_(size, count)
#define _Inout_
#define _Inout_opt_
#define _Inout_updates_(size)
#define _Inout_updates_bytes_(size)
#define _Outptr_
#define _Outptr_opt_
#define _Outptr_result_maybenull_
#define _Reserved_
#define _Field_size_(size)
#define _Field_size_opt_(size)
#define _Ret_maybenull_
#define _Ret_notnull_
#define _Must_inspect_result_
#define _Check_return_
#define _Success_(condition)
#define _When_(condition, annotation)
#define _Frees_ptr_opt_
#define _IRQL_requires_max_(level)
#define _Use_decl_annotations_

#endif
