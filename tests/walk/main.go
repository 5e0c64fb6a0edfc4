// Command walk counts the files and functions that the gradients of an iteration enter, from backward to the commit and back. These
// are the ones whose statements run more often in a run of twice as many iterations. It reads two coverage profiles of mode count,
// of a run and of the longer one, and prints a line for each package.
//
//	tests/walk.sh    makes both profiles, and calls walk
package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// block is a run of statements, by file and lines.
type block struct {
	file string
	line int
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: walk SHORT LONG, two coverage profiles of mode count")
		os.Exit(2)
	}
	if err := walk(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "walk:", err)
		os.Exit(1)
	}
}

func walk(short, long string) error {
	before, err := counts(short)
	if err != nil {
		return err
	}
	after, err := counts(long)
	if err != nil {
		return err
	}
	lines := map[string][]int{} // by file: lines of blocks that run more often
	for b, n := range after {
		if n > before[b] {
			lines[b.file] = append(lines[b.file], b.line)
		}
	}
	type tally struct{ files, functions int }
	by, all := map[string]*tally{}, tally{}
	for file, at := range lines {
		n, err := functions(file, at)
		if err != nil {
			return err
		}
		dir := filepath.Dir(file)
		if by[dir] == nil {
			by[dir] = &tally{}
		}
		by[dir].files++
		by[dir].functions += n
		all.files++
		all.functions += n
	}
	var dirs []string
	for dir := range by {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	for _, dir := range dirs {
		fmt.Printf("%-24s %4d files %5d functions\n", dir, by[dir].files, by[dir].functions)
	}
	fmt.Printf("%-24s %4d files %5d functions in %d packages\n", "all", all.files, all.functions, len(by))
	return nil
}

// counts reads a profile and returns how often each block ran. File names are relative to the root of the module.
func counts(name string) (map[block]int, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := map[block]int{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "mode:") {
			if lines.Text() != "mode: count" {
				return nil, fmt.Errorf("%s: %s, must be count", name, lines.Text())
			}
			continue
		}
		file, rest, ok := strings.Cut(lines.Text(), ":")
		fields := strings.Fields(rest)
		if !ok || len(fields) != 3 {
			return nil, fmt.Errorf("%s: %q is not a line of a profile", name, lines.Text())
		}
		at, _, _ := strings.Cut(fields[0], ".")
		line, err := strconv.Atoi(at)
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", name, lines.Text(), err)
		}
		n, err := strconv.Atoi(fields[2])
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", name, lines.Text(), err)
		}
		_, path, _ := strings.Cut(file, "/")
		all[block{path, line}] += n
	}
	return all, lines.Err()
}

// functions counts the functions of a file that have one of the lines. A function literal is part of its function.
func functions(file string, lines []int) (n int, err error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return 0, err
	}
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			first, last := set.Position(f.Pos()).Line, set.Position(f.End()).Line
			if slices.ContainsFunc(lines, func(line int) bool { return line >= first && line <= last }) {
				n++
			}
		}
	}
	return n, nil
}
