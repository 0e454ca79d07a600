/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "error.h"
#include "export.h"

int export_pprof(const struct recording *recording, FILE *out, struct prcb_error *err)
{
    return prcb_fail(err, -EOPNOTSUPP,
                     "this prcb was built without protobuf-c or zlib, which --pprof needs (meson "
                     "option 'pprof')");
}
