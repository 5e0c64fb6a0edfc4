package slurm

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestExpand(t *testing.T) {
	for _, c := range []struct{ list, want string }{
		{"", ""},
		{"h1", "h1"},
		{"h[1-2,4],gpu[08-10]", "h1 h2 h4 gpu08 gpu09 gpu10"},
		{"h[1-2]", "h1 h2"},
		{"h1,h2,head", "h1 h2 head"},
		{"rack[1-2]n[08-10],login", "rack1n08 rack1n09 rack1n10 rack2n08 rack2n09 rack2n10 login"},
		{"n[099-101]", "n099 n100 n101"},
		{"n[9-11]", "n9 n10 n11"},
		{"n[3,1-2]-ib", "n3-ib n1-ib n2-ib"},
		{"[1-3]", "1 2 3"},
		{"c[00-01][0-1]", "c000 c001 c010 c011"},
	} {
		got, err := Expand(c.list)
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, %v, want %s", c.list, got, err, c.want)
		}
	}
}

func TestExpandRefuses(t *testing.T) {
	for _, c := range []struct{ list, want string }{
		{"h[1-2", "not closed"},
		{"h1]", "without an opening one"},
		{"h[1[2]]", "inside brackets"},
		{"h[3-1]", "backwards"},
		{"h[a-b]", `"a" is not a number`},
		{"h[]", "is not a number"},
		{"h[1-2/2]", `"2/2" is not a number`},
		{"h1,,h2", "missing beside a comma"},
		{"h1, h2", "blank"},
		{"h[1-999999999]", "more than 131072 hosts"},
		{"h[1-1000][1-1000]", "more than 131072 hosts"},
		{"h[1-100000],g[1-100000]", "more than 131072 hosts"},
		{"h[1234567890123456789]", "at most 18 digits"},
	} {
		if got, err := Expand(c.list); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %d hosts, %v, want an error with %q", c.list, len(got), err, c.want)
		}
	}
}

func TestCompress(t *testing.T) {
	for _, c := range []struct{ hosts, want string }{
		{"", ""},
		{"h1", "h1"},
		{"h1 h2 h4 gpu08 gpu09 gpu10", "h[1-2,4],gpu[08-10]"},
		{"h3 h1 h2", "h[3,1-2]"},
		{"n9 n10", "n[9-10]"},
		{"n09 n10 n11", "n[09-11]"},
		{"n099 n100", "n[099-100]"},
		{"n08 n9", "n[08,9]"},
		{"n1 n01", "n[1,01]"},
		{"n1 n1", "n[1,1]"},
		{"login head", "login,head"},
		{"rack1n1 rack1n2 rack2n1", "rack1n[1-2],rack2n1"},
		{"a12345678901234567890 a12345678901234567891", "a12345678901234567890,a12345678901234567891"},
	} {
		if got := Compress(strings.Fields(c.hosts)); got != c.want {
			t.Errorf("%s: %s, want %s", c.hosts, got, c.want)
		}
	}
}

func TestHostsComeBackFromTheirList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts := rapid.SliceOf(rapid.StringMatching(`(h|gpu|r1n|n-ib)?(0{0,2}[0-9]{1,3}|x)`)).Draw(t, "hosts")
		list := Compress(hosts)
		got, err := Expand(list)
		if err != nil || !slices.Equal(got, hosts) {
			t.Fatalf("%v became %s, which gives %v, %v", hosts, list, got, err)
		}
	})
}

// Any list that Expand accepts survives Compress and Expand; any other list gives an error.
func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"h[1-2,4],gpu[08-10]", "rack[1-2]n[08-10],login", "h[1", "[0-0]", "a[1-3]b,c",
		"é[1-2]", "n[9-11],n[099-101]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, list string) {
		hosts, err := Expand(list)
		if err != nil {
			return
		}
		again, err := Expand(Compress(hosts))
		if err != nil || !slices.Equal(again, hosts) {
			t.Fatalf("%q: %q, after compressing %q, %v", list, hosts, again, err)
		}
	})
}

func TestCounts(t *testing.T) {
	for _, c := range []struct {
		text string
		want []int
	}{
		{"", nil},
		{"2(x4)", []int{2, 2, 2, 2}},
		{"2,1", []int{2, 1}},
		{"2(x3),1", []int{2, 2, 2, 1}},
		{"4(x2),3", []int{4, 4, 3}},
		{"16", []int{16}},
	} {
		if got, err := Counts(c.text); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v, want %v", c.text, got, err, c.want)
		}
	}
	for _, text := range []string{"x", "2(x", "2(x3", "2(x0)", "2(x999999)", "-1", "2,,1", "2(x3)1"} {
		if got, err := Counts(text); err == nil {
			t.Errorf("%s: %v, want an error", text, got)
		}
	}
}
