package station

import "sync"

// Parallel calls piece(i) for each i below n concurrently, and returns when all calls have returned.
func Parallel(n int, piece func(i int)) {
	var others sync.WaitGroup
	for i := 1; i < n; i++ {
		others.Go(func() { piece(i) })
	}
	piece(0)
	others.Wait()
}
