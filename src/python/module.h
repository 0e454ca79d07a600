/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The parts of prcb._prcb.
 */
#ifndef PRCB_PYTHON_MODULE_H
#define PRCB_PYTHON_MODULE_H

#include "binding.h"

/* The number of a tier's name; -1: an exception is set. NULL: the best there is. */
int tier_value(const char *name, unsigned *ret);

/* Adds views of processors to the module; false: an exception is set. */
bool processors_add(PyObject *module);

#endif
