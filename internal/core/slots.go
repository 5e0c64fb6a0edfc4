package core

// slots are the places of a shard into which pushes land. Only those that were ever used have memory.
type slots struct {
	free    []int32   // slots that were used and are free, a stack: the slot used last is still in cache
	used    int32     // slots ever used, at most most
	most    int32     // a push beyond is a worker further ahead than the scheme allows
	records []*pushed // by slot: the push in it, or the last push that was there
	staged  int       // pushes that have landed and are neither folded nor dropped, over all workers
}

// take finds a free slot; false: there is none.
func (k *slots) take() (slot int32, ok bool) {
	n := len(k.free)
	if n == 0 && k.used < k.most {
		k.used++
		return k.used - 1, true
	}
	if n == 0 {
		return 0, false
	}
	slot = k.free[n-1]
	k.free = k.free[:n-1]
	return slot, true
}

// record stores a push that has taken a slot, and reuses the memory of the slot's last push.
func (k *slots) record(p pushed) *pushed {
	for int(p.slot) >= len(k.records) {
		k.records = append(k.records, new(pushed))
	}
	*k.records[p.slot] = p
	return k.records[p.slot]
}

func (k *slots) freeSlot(slot int32) { k.free = append(k.free, slot) }
