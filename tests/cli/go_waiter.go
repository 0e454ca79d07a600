// SPDX-License-Identifier: BSD-2-Clause

// Goroutines that wait in functions of their own, more of them than there are threads.
package main

import (
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

type Cache struct {
	lock  sync.Mutex
	other sync.RWMutex
}

// Small enough to be inlined, as Lock is: it is a frame all the same.
func (c *Cache) Get() int {
	c.lock.Lock()
	return 1
}

func handle(c *Cache) {
	c.Get()
}

func fetch(c *Cache, from net.Conn) {
	c.lock.Lock()
	from.Read(make([]byte, 1))
	c.lock.Unlock()
}

func deep(left int, from chan int) int {
	if left == 0 {
		return <-from
	}
	return deep(left-1, from) + 1
}

func choose(from chan int) {
	select {
	case <-from:
	case <-time.After(time.Hour):
	}
}

func both(c *Cache) {
	c.other.RLock()
	c.other.Lock()
}

func signal(lock *sync.Cond) {
	lock.L.Lock()
	lock.Wait()
}

func main() {
	var all sync.WaitGroup
	cache, nothing := &Cache{}, make(chan int)
	listener, _ := net.Listen("tcp", "127.0.0.1:0")
	connection, _ := net.Dial("tcp", listener.Addr().String())
	go fetch(cache, connection)
	time.Sleep(20 * time.Millisecond)
	for i := 0; i < 100; i++ {
		go handle(cache)
	}
	go deep(30, nothing)
	go choose(nothing)
	go both(cache)
	go signal(sync.NewCond(&sync.Mutex{}))
	go func() { nothing <- <-make(chan int) }()
	go time.Sleep(time.Hour)
	all.Add(1)
	go all.Wait()
	go os.Stdin.Read(make([]byte, 1))
	time.Sleep(20 * time.Millisecond)
	fmt.Println("ready")
	all.Wait()
}
