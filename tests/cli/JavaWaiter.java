// SPDX-License-Identifier: BSD-2-Clause

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/** Threads that wait in methods of their own: interpreted, native, compiled and inlined ones. */
public class JavaWaiter {
    static final Object monitor = new Object();
    static final ReentrantLock lock = new ReentrantLock();

    interface Job {
        void run() throws Exception;
    }

    static int deep(int left) throws Exception {
        if (left == 0) {
            new LinkedBlockingQueue<String>().take();
            return 0;
        }
        return deep(left - 1) + 1;
    }

    static void enter() {
        synchronized (monitor) {
            System.out.println("entered");
        }
    }

    static void größer() {
        lock.lock();
    }

    static void park() {
        LockSupport.park();
    }

    static void inner(int i) {
        if (i == 99999)
            park();
    }

    static void hot(int i) {
        inner(i);
    }

    static void compiled() {
        for (int i = 0; i < 100000; i++)
            hot(i);
    }

    static void start(String name, Job job) {
        Thread thread = new Thread(() -> {
            try {
                job.run();
            } catch (Exception e) {
                throw new RuntimeException(e);
            }
        }, "w-" + name);

        thread.setDaemon(true);
        thread.start();
    }

    static boolean waits() {
        return Thread.getAllStackTraces().keySet().stream().filter(thread -> thread.getName().startsWith("w-"))
            .allMatch(thread -> thread.getState() != Thread.State.RUNNABLE && thread.getState() != Thread.State.NEW);
    }

    public static void main(String[] arguments) throws Exception {
        lock.lock();
        synchronized (monitor) {
            start("deep", () -> deep(100));
            start("enter", JavaWaiter::enter);
            start("lock", JavaWaiter::größer);
            start("sleep", () -> Thread.sleep(1000000));
            start("compiled", JavaWaiter::compiled);
            start("object", () -> {
                Object object = new Object();

                synchronized (object) {
                    object.wait();
                }
            });
            while (!waits())
                Thread.sleep(10);
            System.out.println("ready");
            System.in.read();
        }
    }
}
