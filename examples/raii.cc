// SPDX-License-Identifier: BSD-2-Clause
//
// libprcb in C++: a session, the thread's own handle and a measured scope as objects. What a scope
// took is reported when it ends, also by an exception.
//
//     c++ -std=c++17 raii.cc $(pkg-config --cflags --libs libprcb)
#include <prcb/prcb.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <thread>

namespace account {

struct Error : std::runtime_error {
    int code;
    explicit Error(const prcb_error &e) : std::runtime_error(e.text), code(e.code) {}
};

using Session = std::unique_ptr<struct prcb, decltype(&prcb_close)>;
using Thread = std::unique_ptr<prcb_thread, decltype(&prcb_thread_close)>;

inline Session open()
{
    struct prcb *p;
    prcb_error err;
    if (prcb_open(nullptr, &p, &err)) throw Error(err);
    return {p, prcb_close};
}

inline Thread self(const Session &session)
{
    prcb_thread *t;
    prcb_error err;
    if (prcb_thread_open_self(session.get(), &t, &err)) throw Error(err);
    return {t, prcb_thread_close};
}

template <typename Report> class Scope {
    prcb_thread *thread;
    Report report;
    prcb_account begin{};

public:
    Scope(const Thread &t, Report r) : thread(t.get()), report(r)
    {
        begin.size = sizeof(begin);
        if (prcb_thread_read(thread, &begin))
            throw std::runtime_error("the account cannot be read");
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

} // namespace account

int main()
try {
    auto session = account::open();
    auto thread = account::self(session);
    account::Scope scope(thread, [](const prcb_account &a) {
        std::printf("ran %.3f ms, slept %.3f ms, %llu switches\n", a.run_ns / 1e6,
                    a.waits[PRCB_CAUSE_SLEEP].ns / 1e6, (unsigned long long)a.switches);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
} catch (const account::Error &e) {
    std::fprintf(stderr, "raii: %s\n", e.what());
    return 1;
}
