/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The array that grows: its elements, how many there are, and for how many there is room. These are
 * three variables or members of the user's, of any names and integer types, at first NULL, 0 and
 * 0; free() ends the elements. How large an array may become is the user's to say, before adding.
 * Arguments are evaluated more than once. No threads.
 *
 * Also what libc wants a pointer for even where there is nothing: sorting, searching and copying of
 * no elements, of which the pointer may be NULL.
 */
#ifndef PRCB_BASE_ARRAY_H
#define PRCB_BASE_ARRAY_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_LEAST 16 /* elements that a first room is for */

/* The most that an integer variable can count. */
#define ARRAY_COUNTS(variable)                                                                     \
    ((size_t)(UINT64_MAX >> (64 - 8 * sizeof(variable) + ((__typeof__(variable))-1 < 1))))

/* Makes room for `more` elements behind `count`, at least twice the old room. -ENOMEM: *items
 * and *room stay as they were. most: what the user's variables can count. */
static inline int array_fit(void **items, size_t count, size_t more, size_t *room, size_t most,
                            size_t size)
{
    size_t wanted, fit;
    void *grown;

    if (*room >= count && *room - count >= more)
        return 0;
    most = most < PTRDIFF_MAX / size ? most : PTRDIFF_MAX / size;
    if (__builtin_add_overflow(count, more, &wanted) || wanted > most)
        return -ENOMEM;
    fit = *room > most / 2 ? most : 2 * *room;
    fit = fit < wanted ? wanted : fit;
    fit = fit < ARRAY_LEAST && ARRAY_LEAST <= most ? ARRAY_LEAST : fit;
    grown = realloc(*items, fit * size);
    if (!grown)
        return -ENOMEM;
    *items = grown;
    *room = fit;
    return 0;
}

/* Makes room for `more` elements behind `count`. 0 or -ENOMEM. */
#define array_reserve(items, count, room, more)                                                    \
    __extension__({                                                                                \
        void *array_items = (items);                                                               \
        size_t array_room = (room);                                                                \
        int array_result = array_fit(&array_items, (count), (more), &array_room,                   \
                                     ARRAY_COUNTS(room), sizeof(*(items)));                        \
        (items) = array_items;                                                                     \
        (room) = (__typeof__(room))array_room;                                                     \
        array_result;                                                                              \
    })

/* Adds an element, whose value stands last and is evaluated only where there is room. 0 or
 * -ENOMEM. */
#define array_add(items, count, room, ...)                                                         \
    __extension__({                                                                                \
        int array_failed = array_reserve(items, count, room, 1);                                   \
        if (!array_failed) {                                                                       \
            (items)[(count)] = (__VA_ARGS__);                                                      \
            (count)++;                                                                             \
        }                                                                                          \
        array_failed;                                                                              \
    })

/* Does the same if no variable says what room there is: it is the power of two that the count
 * has reached. It is for arrays that are filled once: to fill one again moves it each time. */
#define array_append(items, count, ...)                                                            \
    __extension__({                                                                                \
        __typeof__(count) array_rooms = (count) & ((count)-1) ? (count) + 1 : (count);             \
        array_add(items, count, array_rooms, __VA_ARGS__);                                         \
    })

/* Makes room for the elements up to this place, which is included: new ones are zero. The room
 * tells how many there are. 0 or -ENOMEM. */
#define array_cover(items, room, place)                                                            \
    __extension__({                                                                                \
        size_t array_old = (room), array_wanted = (size_t)(place) + 1;                             \
        int array_uncovered = array_reserve(items, (size_t)0, room, array_wanted);                 \
        if (!array_uncovered && (size_t)(room) > array_old)                                        \
            memset((items) + array_old, 0, ((size_t)(room)-array_old) * sizeof(*(items)));         \
        array_uncovered;                                                                           \
    })

#define array_sort(items, count, compare)                                                          \
    ((count) ? qsort((items), (count), sizeof(*(items)), (compare)) : (void)0)

#define array_sort_r(items, count, compare, ctx)                                                   \
    ((count) ? qsort_r((items), (count), sizeof(*(items)), (compare), (ctx)) : (void)0)

/* Returns the element that equals *key in an array in this order; NULL: none. */
#define array_search(key, items, count, compare)                                                   \
    ((count) ? bsearch((key), (items), (count), sizeof(*(items)), (compare)) : NULL)

/* Returns how many elements stand in front of the first one for which the condition, on its
 * index `at`, is false; the condition is true for all of these. */
#define array_front(at, count, condition)                                                          \
    __extension__({                                                                                \
        size_t array_low = 0, array_high = (count);                                                \
        while (array_low < array_high) {                                                           \
            size_t at = array_low + (array_high - array_low) / 2;                                  \
            if (condition)                                                                         \
                array_low = at + 1;                                                                \
            else                                                                                   \
                array_high = at;                                                                   \
        }                                                                                          \
        array_low;                                                                                 \
    })

/* Copies elements; the two do not overlap. */
#define array_copy(to, from, count)                                                                \
    ((count) ? (void)memcpy((to), (from), (count) * sizeof(*(to))) : (void)0)

#endif
