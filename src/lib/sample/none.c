/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The calls of prcb/sample.h in a library built without eBPF: no sampler can be opened, so
 * nobody has one to call the others with.
 */
#include <errno.h>

#include <prcb/sample.h>

#include "area.h"
#include "error.h"
#include "record_size.h"

static int none(struct prcb_error *err)
{
    return prcb_fail(err, -EOPNOTSUPP, "this library was built without eBPF: it cannot sample");
}

int prcb_sampler_open(const struct prcb_sampler_options *opts, struct prcb_sampler **ret,
                      struct prcb_error *err)
{
    return none(err);
}

void prcb_sampler_close(struct prcb_sampler *s)
{
}

int prcb_sampler_program(const struct prcb_sampler *s, uint32_t i, struct prcb_program *ret)
{
    return -ENOENT;
}

int prcb_ds_area_alloc(struct prcb_sampler *s, int cpu, struct prcb_ds_area **ret,
                       struct prcb_error *err)
{
    return none(err);
}

int prcb_ds_area_free(struct prcb_sampler *s, int cpu, struct prcb_error *err)
{
    return none(err);
}

int prcb_sampler_check(struct prcb_sampler *s, int cpu, struct prcb_error *err)
{
    return none(err);
}

int prcb_sampler_choose(struct prcb_sampler *s, pid_t pid, pid_t tid, struct prcb_error *err)
{
    return none(err);
}

int prcb_sampler_filter(const struct prcb_sampler *s)
{
    return none(NULL);
}

int prcb_sampler_filter_then(struct prcb_sampler *s, int program, struct prcb_error *err)
{
    return none(err);
}

int area_take(struct prcb_sampler *s, size_t bytes, struct prcb_ds_area **ret,
              struct prcb_error *err)
{
    return none(err);
}

void area_put_back(struct prcb_sampler *s, struct prcb_ds_area *area)
{
}

int area_install(struct prcb_sampler *s, int cpu, struct prcb_ds_area *area,
                 struct prcb_ds_area **ret)
{
    return none(NULL);
}

int prcb_sample_buffer_alloc(struct prcb_sampler *s, size_t bytes, void **ret,
                             struct prcb_error *err)
{
    return none(err);
}

int prcb_sample_buffer_free(struct prcb_sampler *s, void *buffer, struct prcb_error *err)
{
    return none(err);
}

int prcb_sample_open(struct prcb_sampler *s, int cpu, const struct prcb_sample_options *opts,
                     struct prcb_sample **ret, struct prcb_error *err)
{
    return none(err);
}

int prcb_bts_open(struct prcb_sampler *s, int cpu, const struct prcb_sample_options *opts,
                  struct prcb_sample **ret, struct prcb_error *err)
{
    return none(err);
}

int prcb_sample_add(struct prcb_sample *p, pid_t tid, struct prcb_error *err)
{
    return none(err);
}

void prcb_sample_close(struct prcb_sample *p)
{
}

enum prcb_sample_source prcb_sample_source(const struct prcb_sample *p)
{
    return PRCB_SOURCE_CLOCK;
}

size_t prcb_sample_stride(const struct prcb_sample *p)
{
    return 0;
}

size_t prcb_sample_record_size(const struct prcb_sample *p)
{
    return 0;
}

int prcb_sample_fd(const struct prcb_sample *p)
{
    return -1;
}

void prcb_sample_acknowledge(struct prcb_sample *p)
{
}

int prcb_sample_drain(struct prcb_sample *p, prcb_sample_drain_fn fn, void *ctx)
{
    return none(NULL);
}

int prcb_sample_count(const struct prcb_sample *p, struct prcb_sample_counts *ret)
{
    return none(NULL);
}

int prcb_switches_open(struct prcb_sampler *s, size_t bytes, struct prcb_switches **ret,
                       struct prcb_error *err)
{
    return none(err);
}

void prcb_switches_close(struct prcb_switches *w)
{
}

int prcb_switches_fd(const struct prcb_switches *w)
{
    return -1;
}

int prcb_switches_read(struct prcb_switches *w, prcb_switch_fn fn, void *ctx, uint64_t *ret_lost)
{
    return none(NULL);
}
