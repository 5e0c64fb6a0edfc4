package main

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestGet(t *testing.T) {
	data := []byte(`{"a": {"b": [10, 2.5, "x y", null]}, "per_shard": [{"scheme": "bsp"}, {"scheme": "ssp"}], "none": []}`)
	for _, c := range []struct{ path, want string }{
		{"a.b.0", "10"},
		{"a.b.1", "2.5"},
		{"a.b.2", "x y"},
		{"a.b.3", "null"},
		{"a.b", `[10,2.5,"x y",null]`},
		{"per_shard.*.scheme", "bsp\nssp"},
		{"none.*.scheme", ""},
	} {
		lines, err := get(data, c.path)
		if got := strings.Join(lines, "\n"); err != nil || got != c.want {
			t.Errorf("get %s = %q, %v; want %q", c.path, got, err, c.want)
		}
	}
	for _, c := range []struct{ path, want string }{
		{"a.c", "path a.c: no field c"},
		{"a.b.4", "path a.b.4: no item 4 in a list of 4"},
		{"a.b.x", "path a.b.x: no item x in a list of 4"},
		{"a.b.0.c", "path a.b.0.c: c of 10, which is neither object nor list"},
	} {
		if _, err := get(data, c.path); err == nil || err.Error() != c.want {
			t.Errorf("get %s: error %v, want %q", c.path, err, c.want)
		}
	}
	if _, err := get([]byte(`{"a": 1`), "a"); err == nil {
		t.Error("half a file was read without an error")
	}
}

func TestIntact(t *testing.T) {
	good := fstest.MapFS{
		"run.json":           {Data: []byte("{\"ranks\": []}\n")},
		"metrics.jsonl":      {Data: []byte("{\"a\": 1}\n{\"a\": 2}\n")},
		"metrics.csv":        {Data: []byte("a,b\n1,2\n3,\"4,5\"\n")},
		"logs/rank-0000.log": {Data: nil},
	}
	if files, err := intact(good); err != nil || files != 4 {
		t.Errorf("intact = %d, %v; want 4 files", files, err)
	}
	for name, c := range map[string]struct{ data, want string }{
		"summary.json":       {"{\"finished\": \n", "summary.json: unexpected end of JSON input"},
		"metrics.jsonl":      {"{\"a\": 1}\n{\"a\": \n", "metrics.jsonl: line 2 is not JSON: {\"a\":"},
		"metrics.csv":        {"a,b\n1\n", "metrics.csv: record on line 2: wrong number of fields"},
		"summary.txt":        {"Finished", "summary.txt: the last line is cut off"},
		".summary.json.new":  {"{}\n", ".summary.json.new: a temporary file was left behind"},
		"logs/rank-0001.log": {"{\"msg\"\n", "logs/rank-0001.log: line 1 is not JSON: {\"msg\""},
	} {
		_, err := intact(fstest.MapFS{name: {Data: []byte(c.data)}})
		if err == nil || strings.TrimSpace(err.Error()) != c.want {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}
