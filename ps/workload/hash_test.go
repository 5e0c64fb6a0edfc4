package workload

import "testing"

func TestHashOf(t *testing.T) {
	// printf '\x00\x00\x80\x3f\x00\x00\x00\xc0' | sha256sum
	if got, want := HashOf([]float32{1, -2}), "ee4ac73c2bd27756ab82780f27c73a7bc4d3f0bb6acb37e008bc27eccd7e588b"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	long := make([]float32, 3000) // more than is hashed at once
	all := HashOf(long)
	long[2999] = 1
	if HashOf(long) == all {
		t.Error("the last element does not count")
	}
}
