//go:build !cuda

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "gpu-check: this binary was built without the tag cuda; make gpu-test-bins builds it with the tag")
	os.Exit(2)
}
