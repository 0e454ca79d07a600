// SPDX-License-Identifier: BSD-2-Clause
// libprcb in C++: sessions, threads and measured scopes as objects; a scope reports when it ends.
//     c++ -std=c++17 raii.cc $(pkg-config --cflags --libs libprcb)
#include <prcb/prcb.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <thread>

template <auto function> struct Call {
    template <typename T> void operator()(T *object) const { function(object); }
};
using Session = std::unique_ptr<struct prcb, Call<prcb_close>>;
using Thread = std::unique_ptr<prcb_thread, Call<prcb_thread_close>>;

inline Session open_session()
{
    struct prcb *p;
    prcb_error err;
    if (prcb_open(nullptr, &p, &err)) throw std::runtime_error(err.text);
    return Session(p);
}
inline Thread open_self(const Session &session)
{
    prcb_thread *t;
    prcb_error err;
    if (prcb_thread_open_self(session.get(), &t, &err)) throw std::runtime_error(err.text);
    return Thread(t);
}
template <typename Report> struct Scope {
    prcb_thread *thread;
    Report report;
    prcb_account begin{};
    Scope(const Thread &t, Report r) : thread(t.get()), report(r)
    {
        begin.size = sizeof(begin);
        if (prcb_thread_read(thread, &begin)) throw std::runtime_error("no account");
    }
    Scope(const Scope &) = delete;
    ~Scope()
    {
        prcb_account end{};
        end.size = sizeof(end);
        if (prcb_thread_read(thread, &end)) return; // no report is better than a wrong one
        prcb_account_sub(&end, &begin, &end);
        report(end);
    }
};
int main()
{
    auto session = open_session();
    auto self = open_self(session);
    Scope scope(self, [](const prcb_account &a) {
        std::printf("ran %.3f ms, slept %.3f ms, %llu switches\n", a.run_ns / 1e6,
                    a.waits[PRCB_CAUSE_SLEEP].ns / 1e6, (unsigned long long)a.switches);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}
