package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// stream has a package for each outcome, one whose process died, one that does not compile, and one from test2json.
const stream = `{"Action":"start","Package":"fluentps/a"}
{"Action":"output","Package":"fluentps/a","Test":"TestGood","Output":"=== RUN   TestGood\n"}
{"Action":"output","Package":"fluentps/a","Test":"TestGood","Output":"    good_test.go:3: nobody needs this\n"}
{"Action":"pass","Package":"fluentps/a","Test":"TestGood/part","Elapsed":0.5}
{"Action":"pass","Package":"fluentps/a","Test":"TestGood","Elapsed":0.5}
{"Action":"pass","Package":"fluentps/a","Test":"TestSide/long","Elapsed":9.25}
{"Action":"pass","Package":"fluentps/a","Test":"TestSide","Elapsed":0}
{"Action":"output","Package":"fluentps/a","Test":"TestLeft","Output":"    left_test.go:3: no tool\n"}
{"Action":"skip","Package":"fluentps/a","Test":"TestLeft","Elapsed":0}
{"Action":"output","Package":"fluentps/a","Output":"PASS\n"}
{"Action":"output","Package":"fluentps/a","Output":"ok  \tfluentps/a\t1.200s\n"}
{"Action":"pass","Package":"fluentps/a","Elapsed":1.2}
{"Action":"output","Package":"fluentps/b","Test":"TestBad","Output":"=== RUN   TestBad\n"}
{"Action":"output","Package":"fluentps/b","Test":"TestBad","Output":"    bad_test.go:7: 1, want 2\n"}
{"Action":"output","Package":"fluentps/b","Test":"TestBad","Output":"--- FAIL: TestBad (0.10s)\n"}
{"Action":"fail","Package":"fluentps/b","Test":"TestBad","Elapsed":0.1}
{"Action":"output","Package":"fluentps/b","Test":"TestOpen","Output":"panic: boom\n"}
{"Action":"output","Package":"fluentps/b","Output":"exit status 2\n"}
{"Action":"output","Package":"fluentps/b","Output":"FAIL\tfluentps/b\t0.300s\n"}
{"Action":"fail","Package":"fluentps/b","Elapsed":0.3}
{"ImportPath":"fluentps/c","Action":"build-output","Output":"c.go:1:1: expected 'package'\n"}
{"ImportPath":"fluentps/c","Action":"build-fail"}
{"Action":"output","Package":"fluentps/d","Output":"PASS\n"}
{"Action":"pass","Package":"fluentps/d","Elapsed":2}
{"Action":"output","Package":"fluentps/e","Test":"TestCut","Output":"was cut off\n"}
go: no such tool
`

const wantOutput = `ok  	fluentps/a	1.200s
--- FAIL: TestBad (0.10s)
    bad_test.go:7: 1, want 2
--- unfinished: TestOpen
panic: boom
exit status 2
FAIL	fluentps/b	0.300s
c.go:1:1: expected 'package'
ok  	fluentps/d	2.000s
go: no such tool
--- unfinished: TestCut
was cut off
`

const listOfAll = `the slowest 4 of 4 tests:
    9.2 s  pure     a TestSide/long
    0.5 s  pure     a TestGood
    0.1 s  pure     b TestBad
    0.0 s  pure     a TestSide
skipped in pure: a.TestLeft
`

func TestPassesOnWhatGoTestSays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kept")
	var out strings.Builder
	if err := run([]string{"pure", file}, strings.NewReader(stream), &out); err != nil {
		t.Fatal(err)
	}
	if out.String() != wantOutput {
		t.Errorf("passed on:\n%s\nwant:\n%s", out.String(), wantOutput)
	}
	out.Reset()
	if err := run([]string{file}, nil, &out); err != nil {
		t.Fatal(err)
	}
	if out.String() != listOfAll {
		t.Errorf("listed:\n%s\nwant:\n%s", out.String(), listOfAll)
	}
}
