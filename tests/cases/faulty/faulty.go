// SPDX-License-Identifier: BSD-2-Clause
package main

import (
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// Twenty goroutines that wait for a mutex which one holds for long.
var mutex sync.Mutex

func rebuildIndex() {
	mutex.Lock()
	time.Sleep(30 * time.Millisecond)
	mutex.Unlock()
}

func lookUp() {
	mutex.Lock()
	mutex.Unlock()
}

func serve() {
	for {
		lookUp()
		time.Sleep(time.Millisecond)
	}
}

// The same, and who holds it waits for an answer from the network, as servers' goroutines do for questions.
func fetchRate(to net.Conn) {
	to.Write([]byte("x"))
	to.Read(make([]byte, 1))
}

func price(to net.Conn) {
	mutex.Lock()
	fetchRate(to)
	mutex.Unlock()
}

func answer(from net.Conn) {
	for {
		from.Read(make([]byte, 1))
		time.Sleep(50 * time.Millisecond)
		from.Write([]byte("x"))
	}
}

func network() {
	listener, _ := net.Listen("tcp", "127.0.0.1:0")
	for i := 0; i < 10; i++ {
		to, _ := net.Dial("tcp", listener.Addr().String())
		from, _ := listener.Accept()
		go answer(from)
		go func() {
			for {
				price(to)
			}
		}()
	}
	fmt.Println("ready")
	select {}
}

func main() {
	if len(os.Args) > 1 {
		network()
	}
	for i := 0; i < 20; i++ {
		go serve()
	}
	fmt.Println("ready")
	for {
		rebuildIndex()
		time.Sleep(time.Millisecond)
	}
}
