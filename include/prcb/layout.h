/* SPDX-License-Identifier: BSD-2-Clause
 *
 * prcb layouts: what the bytes of NT's processor structures mean, version by version.
 *
 * PROCESSOR_POWER_STATE and its relatives changed in nearly every Windows release. A layout is one
 * structure in one version for one processor architecture. With it bytes are decoded into values,
 * values encoded into bytes, members found by name, and the C definition printed. The facts come
 * from a catalog of rows compiled into the library (src/windows/layout/catalog/); this is not a
 * debugger's type system: it reads no symbol files. Rows that somebody else read from one make a
 * layout of a version that is not in the catalog (prcb_layout_from_symbols).
 *
 *     struct prcb_layout *l;
 *     if (prcb_layout_find("PROCESSOR_POWER_STATE", "Windows 11 22H2", PRCB_ARCH_X64, &l, &err))
 *         ... err.text says what is wrong and names near matches
 *     uint64_t total;
 *     prcb_layout_get(l, bytes, length, "IdleTimeTotal", &total, &err);
 *     prcb_layout_close(l);
 *
 * Bytes    NT's: little-endian and unaligned, whatever the host. The host's own structures and
 *          alignment rules play no part.
 * Absent   A member that a version does not have is -ENOENT, never 0.
 * Bounds   No function reads or writes a byte outside the buffer it is given. A buffer that is too
 *          short is -ENODATA, with structure, member and offset in err->text, the offset also in
 *          err->offset.
 * Errors   0 or -errno; results unchanged on failure; err may be NULL.
 * Threads  A layout never changes once it is found: any number of threads may use it.
 * Owner    prcb_layout_find gives a layout to the caller, prcb_layout_close takes it back. All that
 *          is reached through it (names, fields, nested layouts) is borrowed until then. Strings of
 *          the catalog itself (structures, versions) are static.
 */
#ifndef PRCB_LAYOUT_H
#define PRCB_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <prcb/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- versions ----------------------------------------------------------- */

enum prcb_arch {
    PRCB_ARCH_X86 = 0, /* 32-bit Windows */
    PRCB_ARCH_X64 = 1, /* 64-bit Windows on AMD64 */
};

/* "x86", "x64" (also "i386", "amd64", "x86_64", "32", "64" and so on, any case). -EINVAL. */
PRCB_API int prcb_arch_parse(const char *text, enum prcb_arch *ret, struct prcb_error *err);
PRCB_API const char *prcb_arch_name(enum prcb_arch arch);

/* A version of Windows of which structures are known. Static strings. */
struct prcb_layout_version {
    size_t size;         /* sizeof(struct prcb_layout_version), set by the caller */
    unsigned int id;     /* its place in the catalog, 0 the oldest */
    const char *name;    /* the build: "10.0.18362.295", "5.2.3790 SP1" */
    const char *key;     /* one word for the builds that go by one name: "5.2-late", "6.1" */
    const char *release; /* "Windows 10 1903" */
    uint16_t major, minor;
    uint32_t build, revision; /* revision 0: the release's, or not known */
    bool x86, x64;            /* for which processors its kernel was read */
};

/* The known versions in order: 0 or -ENOENT past the last; -EINVAL: size is not set. */
PRCB_API int prcb_layout_version_at(unsigned int id, struct prcb_layout_version *ret);

/* Room for the words that say how a version was chosen. */
#define PRCB_LAYOUT_NOTE 192

/* Finds the version that words mean: a name ("XP SP3", "1909", "Windows 11 22H2"), a version
 * ("6.1", "early 6.0") or a build ("10.0.18362.295", "5.2.3790 SP1"). A build without revision is
 * the last revision known; one between two known builds, or past the last, is the known one before
 * it. note, if not NULL, has room for PRCB_LAYOUT_NOTE bytes and is filled with what was assumed,
 * or "" where nothing was.
 * -EINVAL   not a version, or one that fits several layouts: err->text has the choices; or size is
 *           not set
 * -ENOENT   older than all versions known for this processor */
PRCB_API int prcb_layout_version_parse(const char *text, enum prcb_arch arch,
                                       struct prcb_layout_version *ret, char *note,
                                       struct prcb_error *err);

/* ---- structures --------------------------------------------------------- */

/* Names of all structures, unions and enumerations; NULL past the last. */
PRCB_API const char *prcb_layout_structure_at(unsigned int index);

/* A pointer-to-function type: all strings static. */
struct prcb_layout_function {
    size_t size;            /* sizeof(struct prcb_layout_function), set by the caller */
    const char *name;       /* "PPROCESSOR_IDLE_FUNCTION" */
    const char *returns;    /* "VOID" */
    const char *convention; /* "FASTCALL" */
    const char *parameters; /* "PROCESSOR_POWER_STATE *" */
    const char *source;     /* grade, as prcb_layout_source */
};
/* -ENOENT past the last; -EINVAL: size is not set. */
PRCB_API int prcb_layout_function_at(unsigned int index, struct prcb_layout_function *ret);

struct prcb_layout; /* one structure in one version on one processor: opaque */

/* Finds a structure as of a version. A leading underscore of the name does not count.
 * -ENOENT  no such structure (err->text has near names), or not in this version
 * -EINVAL  the version is none, or ambiguous (err->text has the choices)
 * -ENOMEM */
PRCB_API int prcb_layout_find(const char *structure, const char *version, enum prcb_arch arch,
                              struct prcb_layout **ret, struct prcb_error *err);
/* The same for a version by its place in the catalog. */
PRCB_API int prcb_layout_find_id(const char *structure, unsigned int version, enum prcb_arch arch,
                                 struct prcb_layout **ret, struct prcb_error *err);
struct prcb_dump_symbol;
/* A structure of a version that need not be in the catalog, made of `count` rows of symbols as
 * prcb/dump.h has them, of row_size bytes each; they may go afterwards. version is a build,
 * "10.0.26200.1742", or NULL, which is named "symbols". Source and version of such a layout are the
 * rows'; its id is that of the nearest version in the catalog. -ENOENT  the rows do not have the
 * structure, or the version is older than all known ones -EINVAL  the version is none, or the rows
 * contradict each other; -E2BIG; -ENOMEM */
PRCB_API int prcb_layout_from_symbols(const char *structure, const char *version,
                                      enum prcb_arch arch, const struct prcb_dump_symbol *rows,
                                      size_t count, size_t row_size, struct prcb_layout **ret,
                                      struct prcb_error *err);
/* NULL is allowed. Not for nested layouts: those go with their parent. */
PRCB_API void prcb_layout_close(struct prcb_layout *layout);

PRCB_API const char *prcb_layout_name(const struct prcb_layout *layout);
PRCB_API void prcb_layout_version(const struct prcb_layout *layout,
                                  struct prcb_layout_version *ret);
PRCB_API enum prcb_arch prcb_layout_arch(const struct prcb_layout *layout);
PRCB_API uint32_t prcb_layout_size(const struct prcb_layout *layout);
/* What was assumed to arrive at this layout, one line; "" where nothing was. */
PRCB_API const char *prcb_layout_note(const struct prcb_layout *layout);
/* Where the facts come from: "symbols", "header", "vendor", "analyst" or "inferred"; always
 * inferred of a version that is not in the catalog, and of one in which nobody read the structure.
 */
PRCB_API const char *prcb_layout_source(const struct prcb_layout *layout);
/* Only some members are listed (KPRCB, KTHREAD); most bytes have no name. */
PRCB_API bool prcb_layout_is_partial(const struct prcb_layout *layout);
PRCB_API bool prcb_layout_is_union(const struct prcb_layout *layout);

/* ---- fields ------------------------------------------------------------- */

enum prcb_layout_kind {
    PRCB_LAYOUT_UNSIGNED, /* a number */
    PRCB_LAYOUT_SIGNED,
    PRCB_LAYOUT_POINTER, /* an address, 4 or 8 bytes */
    PRCB_LAYOUT_ENUM,    /* a number that may have a name */
    PRCB_LAYOUT_NESTED,  /* a structure by value that has its own layout */
    PRCB_LAYOUT_INLINE,  /* an unnamed structure or union: its members follow it, as "Flags.X" */
    PRCB_LAYOUT_OPAQUE,  /* bytes whose members are not known */
};

/* A named stretch of a structure. */
struct prcb_layout_field {
    const char *name; /* as the symbols spell it. Of a member: "PerfActionDpc"; of a leaf, or a
                         member of an inline one: the dotted path */
    const char *type; /* its type's name, without '*' and '[]': "ULONG", "KDPC" */
    enum prcb_layout_kind kind; /* of one element */
    uint32_t offset;            /* from the start of the structure it was looked up in */
    uint32_t size;              /* of all elements together */
    uint32_t count;     /* elements; 1 for what is no array. Elements are size / count apart */
    uint16_t inner;     /* not 0: an array of arrays, count / inner of inner elements */
    uint8_t bit_first;  /* bit fields: lowest bit and width in the unit at offset */
    uint8_t bit_width;  /* 0: no bit field */
    bool in_union;      /* may share bytes with its neighbours */
    bool is_array;      /* written with [] even if count is 1 */
    bool is_function;   /* POINTER: to a function, and type is the pointer's own type */
    bool is_inner;      /* belongs to the inline member before it */
    const char *source; /* grade, as prcb_layout_source */
    const struct prcb_layout *layout; /* NESTED: the layout of one element; else NULL */
    const void *enumeration;          /* private */
    uint64_t reserved[4];
};

/* The members in order of offset, and how many. Members of an inline structure or union follow it.
 */
PRCB_API const struct prcb_layout_field *prcb_layout_members(const struct prcb_layout *layout,
                                                             size_t *ret_count);
/* All that holds a value, down through nesting and arrays: one scalar (or one opaque stretch)
 * each, named by its path ("HwCounters[3].Total"), in order of offset. */
PRCB_API const struct prcb_layout_field *prcb_layout_leaves(const struct prcb_layout *layout,
                                                            size_t *ret_count);

/* Finds a field by dotted path with optional indexes: "PerfActionDpc.DeferredContext",
 * "Flags.PStateDomain", "HwCounters[3].Total". A spelling of the article that the symbols do not
 * share ("OverUtilitized") is found as well. ret->name is that of the last
 * member alone.
 * -ENOENT  this version has no such member, -ERANGE index beyond the array, -EINVAL bad path */
PRCB_API int prcb_layout_lookup(const struct prcb_layout *layout, const char *path,
                                struct prcb_layout_field *ret, struct prcb_error *err);

/* "PPM_IDLE_STATES *", "ULONG[3]", "KDPC": at most size bytes with the NUL, cut if need be. */
PRCB_API void prcb_layout_type_text(const struct prcb_layout_field *field, char *buffer,
                                    size_t size);

/* Name of an enumeration's number in this version, static; NULL: none is known, or no ENUM. */
PRCB_API const char *prcb_layout_enum_name(const struct prcb_layout *layout,
                                           const struct prcb_layout_field *field, uint64_t value);
/* The index'th name and number of an ENUM field's type; -ENOENT past the last. */
PRCB_API int prcb_layout_enum_at(const struct prcb_layout *layout,
                                 const struct prcb_layout_field *field, unsigned int index,
                                 const char **ret_name, uint64_t *ret_value);

/* ---- values ------------------------------------------------------------- */

/* The value of a scalar. A negative SIGNED number is sign-extended: (int64_t)value. */

/* Decodes element `index` (0 for what is no array) of a field of this layout, whose structure
 * starts at bytes.
 * -ENODATA  the buffer ends before the field does
 * -EINVAL   the field has no single value (NESTED, INLINE, OPAQUE), -ERANGE index */
PRCB_API int prcb_layout_decode(const struct prcb_layout *layout,
                                const struct prcb_layout_field *field, uint32_t index,
                                const void *bytes, size_t length, uint64_t *ret,
                                struct prcb_error *err);
/* The reverse: writes value into the field and changes no other bit.
 * -ERANGE   the value does not fit the field; SIGNED takes negative values as int64_t */
PRCB_API int prcb_layout_encode(const struct prcb_layout *layout,
                                const struct prcb_layout_field *field, uint32_t index,
                                uint64_t value, void *bytes, size_t length, struct prcb_error *err);

/* Decode or encode by path. */
PRCB_API int prcb_layout_get(const struct prcb_layout *layout, const void *bytes, size_t length,
                             const char *path, uint64_t *ret, struct prcb_error *err);
PRCB_API int prcb_layout_put(const struct prcb_layout *layout, void *bytes, size_t length,
                             const char *path, uint64_t value, struct prcb_error *err);

/* Decodes every leaf at once: values[i] belongs to leaf i, 0 for opaque ones. count must be the
 * number of leaves (-EINVAL otherwise); -ENODATA if the buffer is shorter than the structure (for
 * a partial one: than its last leaf). */
PRCB_API int prcb_layout_decode_all(const struct prcb_layout *layout, const void *bytes,
                                    size_t length, uint64_t *values, size_t count,
                                    struct prcb_error *err);
/* Encodes every leaf in order, so of a union the last member wins; opaque leaves and bytes without
 * a name stay as they are. Nothing is written on failure. */
PRCB_API int prcb_layout_encode_all(const struct prcb_layout *layout, const uint64_t *values,
                                    size_t count, void *bytes, size_t length,
                                    struct prcb_error *err);

/* ---- text --------------------------------------------------------------- */

/* Writes the C definition with offsets, as the symbols have it. Returns 0 or -EIO. */
PRCB_API int prcb_layout_print(const struct prcb_layout *layout, FILE *out);
/* Writes a C header that compiles on any host: fixed-width types, explicit padding, static asserts;
 * nested structures come first. Structure names carry the version's id, so that headers for several
 * versions go together. A partial structure has byte arrays where nothing is known. */
PRCB_API int prcb_layout_print_header(const struct prcb_layout *layout, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
