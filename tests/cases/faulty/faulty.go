// SPDX-License-Identifier: BSD-2-Clause
package main

import (
	"fmt"
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

func main() {
	for i := 0; i < 20; i++ {
		go serve()
	}
	fmt.Println("ready")
	for {
		rebuildIndex()
		time.Sleep(time.Millisecond)
	}
}
