package biasgrad

import (
	"slices"
	"testing"
)

func TestByHand(t *testing.T) {
	db := []float32{7, 7, 7}
	sum(db, []float32{1, 2, 3, 4, 5, 6, 9}, 2, 3)
	if want := []float32{5, 7, 9}; !slices.Equal(db, want) {
		t.Errorf("%v, want %v", db, want)
	}
	sum(db, nil, 0, 3)
	if want := []float32{0, 0, 0}; !slices.Equal(db, want) {
		t.Errorf("of no rows: %v, want %v", db, want)
	}
}
