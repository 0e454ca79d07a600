/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The catalog as constant tables, made from the rows in catalog/ by the preprocessor. It holds
 * facts and no logic: layout.c resolves a structure at a version, version.c a version from words.
 * Immutable, so any thread may read it.
 *
 * How to read and write rows
 *
 * A structure is a block in the file of its family, BEGIN(name) ... END(name), holding
 *
 *   SIZE(kind, processors, size, first, last, grade)
 *        Its size from version `first` to version `last`, both included, on X86, X64 or ANY.
 *        The spans of a structure meet: where nothing was read, a row of grade INFERRED says what
 *        is assumed. Outside all spans the structure does not exist, or is not known.
 *        kind: STRUCT; UNION; ENUM; PARTIAL, a structure of which some members are listed;
 *        OPAQUE, one of which none are.
 *
 *   M(name, type, count, x86 offset, x64 offset, first, last, grade)
 *        A member; count is 1, or the number of elements of an array, ONE for an array of one. A
 *        member that did not move is one row with a span; "__" is the offset on a processor that
 *        does not have it. A row speaks only where a SIZE row does: past the last x86 version its
 *        x86 offset means nothing.
 *        Siblings: P pointer to type; F pointer to function; U member of an anonymous union (may
 *        share bytes with its neighbours); UP both; M2 an array of arrays, with two counts;
 *        B(name, type, first bit, width, ...) a bit field in a unit of the given type.
 *        A member of type UNION or STRUCT is followed by its own members, named "Flags.Reserved",
 *        at offsets from the start of the whole structure.
 *
 *   HOLE(owner, x86 offset, x64 offset, size, first, last)
 *        Bytes without a name that alignment does not explain.
 *   E(name, value, first, last, grade)   a name of an enumeration
 *   ALIAS(spelling, name)                another spelling of a member that find accepts
 *   VOLATILE(name, first, last)          a member that public symbols or wdm.h declare volatile: it
 *                                        is said in the C definition and changes nothing else
 *
 * Versions are the ids of catalog/versions.def. LATEST is the last of them and moves with it. A
 * grade speaks of the versions that were there when the rows were written (V rows). In a later one
 * (L rows) a structure is INFERRED until catalog/read.def has a row for it: LATEST claims nothing.
 * Offsets are written, never computed. What no row names must be alignment padding
 * (a gap smaller than the alignment of what follows, which is on its alignment) or a HOLE row:
 * tests/unit/test_layout_catalog.c finds any other gap or overlap.
 *
 * Grades: SYMBOLS public symbol files; HEADER computed from a published header by its alignment
 * rules; VENDOR a public header as it stands; ANALYST the analyst's tables; INFERRED not read,
 * assumed from the versions around it. A member row's grade is that of its best source, a SIZE
 * row's that of the layout as a whole. docs/layout-sources.md names the sources.
 */
#ifndef PRCB_LAYOUT_CATALOG_H
#define PRCB_LAYOUT_CATALOG_H

#include <stdbool.h>
#include <stdint.h>

#include <prcb/layout.h>

enum version_id {
#define V(id, ...) V_##id,
#include "catalog/versions.def"
    V_COUNT,
    V_LATEST = V_COUNT - 1,
};

/* Lists scalars: id, bytes on x86, bytes on x64, how the number is read. */
#define SCALARS(T)                                                                                 \
    T(VOID, 0, 0, PRCB_LAYOUT_OPAQUE)                                                              \
    T(BOOLEAN, 1, 1, PRCB_LAYOUT_UNSIGNED)                                                         \
    T(UCHAR, 1, 1, PRCB_LAYOUT_UNSIGNED)                                                           \
    T(CHAR, 1, 1, PRCB_LAYOUT_SIGNED)                                                              \
    T(WCHAR, 2, 2, PRCB_LAYOUT_UNSIGNED)                                                           \
    T(USHORT, 2, 2, PRCB_LAYOUT_UNSIGNED)                                                          \
    T(SHORT, 2, 2, PRCB_LAYOUT_SIGNED)                                                             \
    T(ULONG, 4, 4, PRCB_LAYOUT_UNSIGNED)                                                           \
    T(LONG, 4, 4, PRCB_LAYOUT_SIGNED)                                                              \
    T(ULONGLONG, 8, 8, PRCB_LAYOUT_UNSIGNED)                                                       \
    T(LONGLONG, 8, 8, PRCB_LAYOUT_SIGNED)                                                          \
    T(ULARGE_INTEGER, 8, 8, PRCB_LAYOUT_UNSIGNED)                                                  \
    T(LARGE_INTEGER, 8, 8, PRCB_LAYOUT_SIGNED)                                                     \
    T(ULONG_PTR, 4, 8, PRCB_LAYOUT_UNSIGNED)                                                       \
    T(UNION, 0, 0, PRCB_LAYOUT_INLINE)                                                             \
    T(STRUCT, 0, 0, PRCB_LAYOUT_INLINE)

enum type_id {
#define T(name, x86, x64, kind) T_##name,
    SCALARS(T)
#undef T
#define BEGIN(name)                                  T_##name,
#define POINTED(name)                                T_##name,
#define FUNCTION(name, returns, conv, params, grade) T_##name,
#include "catalog/all.def"
        T_COUNT,
};

enum {
    ARCH_X86 = 1 << PRCB_ARCH_X86,
    ARCH_X64 = 1 << PRCB_ARCH_X64,
    ARCH_ANY = ARCH_X86 | ARCH_X64,
    ARCH_NONE = 0,
};

enum grade { GRADE_INFERRED, GRADE_ANALYST, GRADE_HEADER, GRADE_VENDOR, GRADE_SYMBOLS };
extern const char *const catalog_grade_names[];

struct version_row {
    uint16_t major, minor;
    uint32_t build, revision;
    uint8_t archs;
    bool later;       /* than the spans: their grades do not speak of it */
    const char *name; /* the build as written: "5.2.3790 SP1" */
    const char *key;  /* layouts that go by one name: "5.2-late" */
    const char *release;
};
extern const struct version_row catalog_versions[V_COUNT];

/* A structure that was read in a later version. */
struct read_row {
    uint16_t type; /* enum type_id */
    uint8_t archs; /* 0 ends the table */
    uint8_t version, grade;
};
extern const struct read_row catalog_reads[];

/* Has the words for versions; the tables end with a NULL name or a build of 0. */
struct version_name {
    const char *name;
    const char *version; /* choice rows: what to say instead */
    bool choice;
    bool is_64; /* a release for 64-bit processors alone */
};
struct same_build {
    uint32_t build, of;
    uint8_t archs; /* where that was seen; elsewhere it is inferred */
};
extern const struct version_name catalog_version_names[];
extern const struct same_build catalog_same_builds[];

/* What a build was sold as; NULL: not as that. Ended by build 0. */
struct release_row {
    uint32_t build;
    const char *workstation, *server;
};
extern const struct release_row catalog_releases[];

enum size_kind { SIZE_STRUCT, SIZE_UNION, SIZE_PARTIAL, SIZE_OPAQUE, SIZE_ENUM };

struct size_row {
    uint8_t kind;  /* enum size_kind */
    uint8_t archs; /* 0 ends the table */
    uint8_t first, last;
    uint8_t grade;
    uint32_t size;
};

enum { ROW_POINTER = 1 << 0, ROW_UNION = 1 << 1 };
#define NO_OFFSET (-1)
#define ONE       0 /* as a count: an array of one element, often the first of many */

struct member_row {
    const char *name;      /* NULL ends the table */
    int32_t offset[2];     /* by enum prcb_arch; NO_OFFSET: not there */
    uint16_t type;         /* enum type_id */
    uint16_t count, inner; /* inner: 0, or the second count of an array of arrays */
    uint8_t first, last;
    uint8_t grade;
    uint8_t flags;
    uint8_t bit_first, bit_width; /* width 0: no bit field */
};

struct enum_row {
    const char *name; /* NULL ends the table */
    uint32_t value;
    uint8_t first, last;
};

struct alias_row {
    const char *spelling; /* NULL ends the table */
    const char *name;
};

struct volatile_row {
    const char *name; /* NULL ends the table */
    uint8_t first, last;
};

enum type_class { TYPE_SCALAR, TYPE_STRUCTURE, TYPE_FUNCTION, TYPE_POINTED };

struct type_row {
    const char *name;
    uint8_t class;                /* enum type_class */
    uint8_t kind;                 /* scalars: enum prcb_layout_kind; functions: enum grade */
    uint8_t scalar_size[2];       /* scalars: by enum prcb_arch */
    const struct size_row *sizes; /* structures, and the next three */
    const struct member_row *members;
    const struct enum_row *enums;
    const struct alias_row *aliases;
    const struct volatile_row *volatiles;
    const struct prcb_layout_function *function; /* functions */
};
extern const struct type_row catalog_types[T_COUNT];

#endif
