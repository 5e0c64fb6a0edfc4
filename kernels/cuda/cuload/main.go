// Command cuload makes the two files that a build with the tag cuda needs in place of an NVIDIA package: the header
// cuda.h, and a static libcuda.a whose functions call the driver once it is open (stub/load.h).
//
//	go run ./kernels/cuda/cuload DIR
//
// writes DIR/include/cuda.h and DIR/libcuda.a. The header is the one that package gorgonia.org/cu carries for its own
// generators. It is preprocessed and lacks the macros of the original; cuload restores them. Without the macros that add
// version suffixes to names, the calls would be those of CUDA 3, with sizes of 32 bits.
//
// The library's functions have names of their own, and the header maps CUDA's names to them: fluentps_cuMemAlloc_v2. A Go
// program exports its symbols. If these had CUDA's names, the driver's callers in other libraries, such as an MPI that is
// built with CUDA, would find ours instead of the driver's.
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// names lists the functions of the driver that the program may call, as the driver exports them.
//
//go:embed names.txt
var names string

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: cuload DIR")
		os.Exit(2)
	}
	if err := build(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "cuload:", err)
		os.Exit(1)
	}
}

func build(dir string) error {
	// On a fresh machine the module may not be downloaded yet: no package of a build without CUDA imports it.
	module, err := output("go", "mod", "download", "-json", "gorgonia.org/cu")
	if err != nil {
		return err
	}
	var found struct{ Dir string }
	if err := json.Unmarshal([]byte(module), &found); err != nil {
		return fmt.Errorf("the output of go mod download for gorgonia.org/cu: %w", err)
	}
	source, err := os.ReadFile(filepath.Join(found.Dir, "cmd", "genlib", "cuda.h"))
	if err != nil {
		return fmt.Errorf("the header of gorgonia.org/cu: %w", err)
	}
	list := strings.Fields(names)
	text, err := header(source, list)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "include"), 0o755); err != nil {
		return err
	}
	write := func(name string, data []byte) {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o644)
		}
	}
	write("include/cuda.h", text)
	write("jumps.S", jumps(list))
	if err != nil {
		return err
	}
	return archive(dir)
}

// archive compiles the jumps and the loader, and puts them into libcuda.a. It fails if the header differs from CUDA's.
func archive(dir string) error {
	folder, err := output("go", "list", "-f", "{{.Dir}}", "fluentps/kernels/cuda/cuload")
	if err != nil {
		return err
	}
	stub := filepath.Join(strings.TrimSpace(folder), "stub")
	jump, load := filepath.Join(dir, "jumps.o"), filepath.Join(dir, "load.o")
	library := filepath.Join(dir, "libcuda.a")
	if err := os.Remove(library); err != nil && !os.IsNotExist(err) { // ar would keep the members of an old archive
		return err
	}
	for _, args := range [][]string{
		{"gcc", "-c", "-o", jump, filepath.Join(dir, "jumps.S")},
		{"gcc", "-O2", "-fPIC", "-Wall", "-Wextra", "-Werror", "-c", "-o", load, filepath.Join(stub, "load.c")},
		{"gcc", "-I" + filepath.Join(dir, "include"), "-c", "-o", filepath.Join(dir, "guard.o"), filepath.Join(stub, "guard.c")},
		{"ar", "rcs", library, jump, load},
	} {
		if _, err := output(args[0], args[1:]...); err != nil {
			return err
		}
	}
	return nil
}

func output(name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(c.Args, " "), err)
	}
	return string(out), nil
}

// firstDeclaration is the first of the driver's own declarations. The declarations before it belong to the C library.
const firstDeclaration = "typedef uint32_t cuuint32_t;"

var versioned = regexp.MustCompile(`_v\d+$`)

// prefix begins the names of the library's functions.
const prefix = "fluentps_"

// header returns the module's header with the includes and macros that it lacks, and with the names of the library's
// functions. With CULOAD_NAMES_OF_CUDA defined it has CUDA's own names, as a driver needs them. It fails if the source is unknown.
func header(source []byte, names []string) ([]byte, error) {
	at := bytes.Index(source, []byte(firstDeclaration))
	if at < 0 {
		return nil, fmt.Errorf("the header of gorgonia.org/cu has no line %q: is it v0.9.6?", firstDeclaration)
	}
	var b bytes.Buffer
	b.WriteString("#pragma once\n#include <stddef.h>\n#include <stdint.h>\n#include <stdlib.h>\n")
	b.WriteString("#ifdef CULOAD_NAMES_OF_CUDA\n")
	for _, name := range names {
		if versioned.MatchString(name) {
			fmt.Fprintf(&b, "#define %s %s\n", versioned.ReplaceAllString(name, ""), name)
		}
	}
	b.WriteString("#else\n")
	for _, name := range append([]string{"cuInit"}, names...) {
		fmt.Fprintf(&b, "#define %s %s%s\n", versioned.ReplaceAllString(name, ""), prefix, name)
	}
	b.WriteString("#endif\n")
	// Two flags are macros in the original, so the preprocessed header lacks them.
	b.WriteString("#define CU_TRSF_READ_AS_INTEGER 1\n#define CU_TRSF_NORMALIZED_COORDINATES 2\n")
	b.WriteString("#ifdef __cplusplus\nextern \"C\" {\n#endif\n")
	b.Write(source[at:])
	b.WriteString("\n#ifdef __cplusplus\n}\n#endif\n")
	return b.Bytes(), nil
}

// jumps returns the assembly of the table, and of a function for each name that jumps to the address in its slot.
func jumps(names []string) []byte {
	var b bytes.Buffer
	b.WriteString("\t.text\n")
	for i, name := range names {
		fmt.Fprintf(&b, "\t.globl %[1]s\n\t.hidden %[1]s\n\t.type %[1]s, @function\n%[1]s:\n\tjmp *cuload_table+%[2]d(%%rip)\n", prefix+name, 8*i)
	}
	b.WriteString("\t.data\n\t.balign 8\n\t.globl cuload_table\n\t.hidden cuload_table\ncuload_table:\n")
	for range names {
		b.WriteString("\t.quad cuload_closed\n")
	}
	b.WriteString("\t.section .data.rel.ro, \"aw\"\n\t.balign 8\n\t.globl cuload_names\n\t.hidden cuload_names\ncuload_names:\n")
	for i := range names {
		fmt.Fprintf(&b, "\t.quad name%d\n", i)
	}
	b.WriteString("\t.section .rodata\n\t.balign 4\n\t.globl cuload_count\n\t.hidden cuload_count\ncuload_count:\n")
	fmt.Fprintf(&b, "\t.long %d\n", len(names))
	for i, name := range names {
		fmt.Fprintf(&b, "name%d:\n\t.asciz \"%s\"\n", i, name)
	}
	b.WriteString("\t.section .note.GNU-stack, \"\", @progbits\n")
	return b.Bytes()
}
