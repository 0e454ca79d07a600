// SPDX-License-Identifier: BSD-2-Clause
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;

/** Twenty threads that share two connections: a pool that is too small. */
public class Faulty {
    static final BlockingQueue<Integer> pool = new ArrayBlockingQueue<>(2);

    static Integer borrowConnection() throws InterruptedException {
        return pool.take();
    }

    static void query() throws InterruptedException {
        Thread.sleep(20);
    }

    static void serve() {
        try {
            while (true) {
                Integer connection = borrowConnection();
                query();
                pool.put(connection);
            }
        } catch (InterruptedException e) {
            System.exit(1);
        }
    }

    public static void main(String[] arguments) {
        pool.add(1);
        pool.add(2);
        for (int i = 0; i < 20; i++)
            new Thread(Faulty::serve, "request-" + i).start();
        System.out.println("ready");
    }
}
