package orthogonal

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
)

func gaussian(rng *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

// plain is the iteration by its definition, in float64, without a transposition.
func plain(g []float32, rows, cols int) []float64 {
	x, norm := make([]float64, len(g)), 0.0
	for _, v := range g {
		norm += float64(v) * float64(v)
	}
	for i, v := range g {
		x[i] = float64(v) / (math.Sqrt(norm) + 1e-7)
	}
	times := func(a, b func(i, k int) float64, rows, inner, cols int) []float64 {
		c := make([]float64, rows*cols)
		for i := range rows {
			for j := range cols {
				for k := range inner {
					c[i*cols+j] += a(i, k) * b(k, j)
				}
			}
		}
		return c
	}
	for range 5 {
		at := func(i, j int) float64 { return x[i*cols+j] }
		gram := times(at, func(k, j int) float64 { return x[j*cols+k] }, rows, cols, rows)
		of := func(i, j int) float64 { return gram[i*rows+j] }
		square := times(of, of, rows, rows, rows)
		next := times(func(i, k int) float64 { return -4.7750*gram[i*rows+k] + 2.0315*square[i*rows+k] }, at, rows, rows, cols)
		for i := range next {
			next[i] += 3.4445 * x[i]
		}
		x = next
	}
	return x
}

// TestMakeFollowsTheDefinition: wide, tall and square matrices, also such as end within a tile or a block.
func TestMakeFollowsTheDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	m := NewMaker()
	for _, form := range [][2]int{{1, 1}, {1, 7}, {7, 1}, {4, 16}, {5, 17}, {16, 16}, {31, 12}, {24, 300}, {270, 40}} {
		rows, cols := form[0], form[1]
		got := gaussian(rng, rows*cols)
		want := plain(got, rows, cols)
		m.Make(got, rows, cols)
		for i := range got {
			if math.Abs(float64(got[i])-want[i]) > 5e-6 {
				t.Fatalf("%d x %d: element %d is %v, want %v", rows, cols, i, got[i], want[i])
			}
		}
	}
}

// singular are the singular values of a matrix, by one-sided Jacobi rotations of its rows or columns.
func singular(x []float32, rows, cols int) []float64 {
	if rows > cols {
		y := make([]float32, len(x))
		transpose(y, x, rows, cols)
		return singular(y, cols, rows)
	}
	a := make([]float64, len(x))
	for i, v := range x {
		a[i] = float64(v)
	}
	dot := func(p, q []float64) (s float64) {
		for i := range p {
			s += p[i] * q[i]
		}
		return s
	}
	for range 30 {
		for i := range rows {
			for j := range i {
				p, q := a[i*cols:(i+1)*cols], a[j*cols:(j+1)*cols]
				pp, qq, pq := dot(p, p), dot(q, q), dot(p, q)
				if math.Abs(pq) <= 1e-12*math.Sqrt(pp*qq) {
					continue
				}
				angle := 0.5 * math.Atan2(2*pq, pp-qq)
				c, s := math.Cos(angle), math.Sin(angle)
				for k := range p {
					p[k], q[k] = c*p[k]+s*q[k], c*q[k]-s*p[k]
				}
			}
		}
	}
	values := make([]float64, rows)
	for i := range values {
		values[i] = math.Sqrt(dot(a[i*cols:(i+1)*cols], a[i*cols:(i+1)*cols]))
	}
	return values
}

// TestSingularValuesAreNearOne: those of Gaussian matrices that are not square, none of which is tiny, come to between 0.65 and 1.2.
func TestSingularValuesAreNearOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	m := NewMaker()
	for _, form := range [][2]int{{1, 5}, {8, 12}, {20, 60}, {60, 20}, {40, 55}, {100, 64}} {
		for _, scale := range []float32{1e-3, 1, 1e20} {
			x := gaussian(rng, form[0]*form[1])
			for i := range x {
				x[i] *= scale
			}
			m.Make(x, form[0], form[1])
			for _, s := range singular(x, form[0], form[1]) {
				if s < 0.65 || s > 1.2 {
					t.Errorf("%v, scale %v: a singular value of %v", form, scale, s)
				}
			}
		}
	}
}

// TestTheTransposeBecomesTheTranspose: only the order of the sum of squares differs.
func TestTheTransposeBecomesTheTranspose(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const rows, cols = 37, 21
	x, y := gaussian(rng, rows*cols), make([]float32, rows*cols)
	transpose(y, x, rows, cols)
	m := NewMaker()
	m.Make(x, rows, cols)
	m.Make(y, cols, rows)
	for i := range rows {
		for j := range cols {
			if a, b := x[i*cols+j], y[j*rows+i]; math.Abs(float64(a-b)) > 2e-6 {
				t.Fatalf("element %d, %d is %v, of the transpose %v", i, j, a, b)
			}
		}
	}
}

// TestPiecesDoNotChangeABit: nor does the order in which they run, or what a Maker has made before.
func TestPiecesDoNotChangeABit(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	const rows, cols = 150, 170
	start := gaussian(rng, rows*cols)
	var want []float32
	for n := 1; n <= 5; n++ {
		m := NewMaker()
		m.Spread(n, func(n int, piece func(i int)) {
			var all sync.WaitGroup
			for i := n - 1; i >= 0; i-- {
				all.Go(func() { piece(i) })
			}
			all.Wait()
		})
		m.Make(gaussian(rng, 160*171), 160, 171)
		x := append([]float32(nil), start...)
		m.Make(x, rows, cols)
		if want == nil {
			want = x
		}
		for i := range x {
			if math.Float32bits(x[i]) != math.Float32bits(want[i]) {
				t.Fatalf("%d pieces: element %d is %v, with one %v", n, i, x[i], want[i])
			}
		}
	}
}

func TestZerosStayAndNaNSpreads(t *testing.T) {
	m := NewMaker()
	x := make([]float32, 12)
	m.Make(x, 3, 4)
	for i, v := range x {
		if v != 0 {
			t.Fatalf("element %d of zeros becomes %v", i, v)
		}
	}
	for _, bad := range []float64{math.Inf(-1), math.NaN()} {
		x := gaussian(rand.New(rand.NewPCG(1, 1)), 12)
		x[5] = float32(bad)
		m.Make(x, 3, 4)
		found := false
		for _, v := range x {
			found = found || v != v
		}
		if !found {
			t.Errorf("%v is lost: %v", bad, x)
		}
	}
}

func TestBytesAreWhatAMakerTakes(t *testing.T) {
	for _, form := range [][2]int{{1, 1}, {30, 200}, {200, 30}} {
		m := NewMaker()
		m.Make(make([]float32, form[0]*form[1]), form[0], form[1])
		got := 4 * int64(cap(m.x)+cap(m.y)+cap(m.gram)+cap(m.square)+cap(m.packed))
		if want := Bytes(form[0], form[1]); got != want {
			t.Errorf("%v: %d bytes, Bytes says %d", form, got, want)
		}
	}
}

func TestFormsThatDoNotFitPanic(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a matrix of 2 x 3 in 5 elements was made")
		}
	}()
	NewMaker().Make(make([]float32, 5), 2, 3)
}
