// SPDX-License-Identifier: BSD-2-Clause
// Iterations of a Google Benchmark split by prcb: what the thread ran, was ready and waited, as
// counters beside the time. An iteration that is longer only for lack of a processor shows it.
//     c++ -std=c++17 google_benchmark.cc $(pkg-config --cflags --libs libprcb benchmark)
#include <benchmark/benchmark.h>
#include <prcb/prcb.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

// Reads the calling thread's account when it is made, and reports the difference for each iteration.
class Split {
public:
    Split()
    {
        prcb_error err;
        if (prcb_open(nullptr, &session, &err) || prcb_thread_open_self(session, &thread, &err)) {
            std::fprintf(stderr, "%s\n", err.text);
            std::exit(1);
        }
        begin.size = sizeof(begin);
        prcb_thread_read(thread, &begin);
    }
    Split(const Split &) = delete;
    ~Split()
    {
        prcb_thread_close(thread);
        prcb_close(session);
    }
    void report(benchmark::State &state)
    {
        prcb_account end{};
        end.size = sizeof(end);
        if (prcb_thread_read(thread, &end)) return; // no counters are better than wrong ones
        prcb_account_sub(&end, &begin, &end);
        const auto each = benchmark::Counter::kAvgIterations;
        if (end.present & PRCB_HAS_RUN) state.counters["run_ns"] = {double(end.run_ns), each};
        if (end.present & PRCB_HAS_READY) state.counters["ready_ns"] = {double(end.ready_ns), each};
        if (!(end.present & PRCB_HAS_WAITS)) return;
        for (uint32_t i = 0; i < PRCB_CAUSE_MAX; i++) {
            if (end.waits[i].ns && prcb_cause_info(i))
                state.counters[std::string(prcb_cause_info(i)->name) + "_ns"] = {double(end.waits[i].ns), each};
        }
    }

private:
    struct prcb *session;
    prcb_thread *thread;
    prcb_account begin{};
};

static void with_a_nap(benchmark::State &state)
{
    Split split;
    for (auto _ : state) std::this_thread::sleep_for(std::chrono::microseconds(200));
    split.report(state);
}
BENCHMARK(with_a_nap)->Iterations(100);
BENCHMARK_MAIN();
