/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The rows of catalog/ as constant tables: one pass over the files per table.
 */
#include "catalog.h"

const char *const catalog_grade_names[] = {
    [GRADE_INFERRED] = "inferred", [GRADE_ANALYST] = "analyst", [GRADE_HEADER] = "header",
    [GRADE_VENDOR] = "vendor",     [GRADE_SYMBOLS] = "symbols",
};

/* ---- versions ---- */

#define V(id, major, minor, build, revision, archs, name, key, release)                            \
    {major, minor, build, revision, ARCH_##archs, false, name, key, release},
#define L(id, major, minor, build, revision, archs, name, key, release)                            \
    {major, minor, build, revision, ARCH_##archs, true, name, key, release},
const struct version_row catalog_versions[V_COUNT] = {
#include "catalog/versions.def"
};
#define V(...) +1
#define L(...)
_Static_assert(0
#include "catalog/versions.def"
                   == 62,
               "spans claim what is said of V rows: a version that is added is an L row");

#define READ(structure, archs, version, grade)                                                     \
    {T_##structure, ARCH_##archs, V_##version, GRADE_##grade},
const struct read_row catalog_reads[] = {
#include "catalog/read.def"
    {0},
};

#define N(name, version)      {name, version, false, false},
#define N64(name, version)    {name, version, false, true},
#define CHOICE(name, choices) {name, choices, true, false},
const struct version_name catalog_version_names[] = {
#include "catalog/versions.def"
    {0},
};
#define SAME(build, of, archs) {build, of, ARCH_##archs},
const struct same_build catalog_same_builds[] = {
#include "catalog/versions.def"
    {0},
};
#define R(build, workstation, server) {build, workstation, server},
const struct release_row catalog_releases[] = {
#include "catalog/versions.def"
    {0},
};

/* ---- structures ---- */

/* The formatter takes half a braced list for a block. */
/* clang-format off */
#define CLOSE_TABLE {0}};
/* clang-format on */

#define BEGIN(name) static const struct size_row sizes_##name[] = {
#define SIZE(kind, archs, size, first, last, grade)                                                \
    {SIZE_##kind, ARCH_##archs, V_##first, V_##last, GRADE_##grade, size},
#define END(name) CLOSE_TABLE
#include "catalog/all.def"

#define __          NO_OFFSET
#define BEGIN(name) static const struct member_row members_##name[] = {
#define ROW(name, type, count, inner, x86, x64, first, last, grade, flags, bit, width)             \
    {#name,    {x86, x64},    T_##type, count, inner, V_##first,                                   \
     V_##last, GRADE_##grade, flags,    bit,   width},
#define END(name) CLOSE_TABLE
#include "catalog/all.def"
#undef __

#define BEGIN(name)                        static const struct enum_row enums_##name[] = {
#define E(name, value, first, last, grade) {#name, value, V_##first, V_##last},
#define END(name)                          CLOSE_TABLE
#include "catalog/all.def"

#define BEGIN(name)           static const struct alias_row aliases_##name[] = {
#define ALIAS(spelling, name) {#spelling, #name},
#define END(name)             CLOSE_TABLE
#include "catalog/all.def"

#define BEGIN(name)                 static const struct volatile_row volatiles_##name[] = {
#define VOLATILE(name, first, last) {#name, V_##first, V_##last},
#define END(name)                   CLOSE_TABLE
#include "catalog/all.def"

#define FUNCTION(name, returns, convention, parameters, grade)                                     \
    static const struct prcb_layout_function function_##name = {                                   \
        sizeof(struct prcb_layout_function), #name, #returns, #convention, parameters, NULL};
#include "catalog/all.def"

const struct type_row catalog_types[T_COUNT] = {
#define T(name, x86, x64, kind) [T_##name] = {#name, TYPE_SCALAR, kind, {x86, x64}},
    SCALARS(T)
#undef T
#define BEGIN(name)                                                                                \
    [T_##name] = {#name,        TYPE_STRUCTURE, 0,                                                 \
                  {0},          sizes_##name,   members_##name,                                    \
                  enums_##name, aliases_##name, volatiles_##name},
#define POINTED(name) [T_##name] = {#name, TYPE_POINTED},
#define FUNCTION(id, returns, convention, parameters, grade)                                       \
    [T_##id] = {#id,  TYPE_FUNCTION, GRADE_##grade, {0},  NULL,                                    \
                NULL, NULL,          NULL,          NULL, &function_##id},
#include "catalog/all.def"
};
