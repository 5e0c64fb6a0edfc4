package fill

import "testing"

func TestValue(t *testing.T) {
	x := []float32{1, 2, 3}
	value(x[:2], 7)
	if x[0] != 7 || x[1] != 7 || x[2] != 3 {
		t.Errorf("%v, want 7 7 3", x)
	}
}
