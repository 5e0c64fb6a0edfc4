package scheme

import "testing"

// FuzzRecall: what a checkpoint says that a scheme remembers is refused, or remembered just so.
func FuzzRecall(f *testing.F) {
	names := []string{"pssp", "dssp", "dsps", "r2sp"}
	made := func(t testing.TB, name string) Learning {
		e, ok := Lookup(name)
		if !ok {
			t.Fatalf("there is no %s", name)
		}
		s, err := e.New(Env{Workers: 3, Shards: []int32{0}, Servers: 1}, Common{}, e.Params())
		if err != nil {
			t.Fatal(err)
		}
		return s.(Learning)
	}
	for i, name := range names {
		f.Add(uint8(i), made(f, name).Memory())
	}
	f.Fuzz(func(t *testing.T, which uint8, memory []byte) {
		l := made(t, names[int(which)%len(names)])
		before := l.Memory()
		if l.Recall(memory) != nil && string(l.Memory()) != string(before) {
			t.Fatal("what was refused is remembered")
		}
	})
}
