package cuemu

import (
	"embed"
	"regexp"
)

//go:embed driver
var driver embed.FS

var call = regexp.MustCompile(`(?m)^API (cu\w+)\(`)

// Calls lists the functions that the emulated driver has. Package cuda calls no others, so a real driver needs them.
func Calls() (names []string) {
	for _, file := range []string{"driver/driver.cpp", "driver/work.inc"} {
		source, err := driver.ReadFile(file)
		if err != nil {
			panic(err) // it is part of the binary
		}
		for _, m := range call.FindAllSubmatch(source, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}
