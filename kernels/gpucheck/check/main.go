//go:build cuda

// Command check is what kernels/gpu-check starts: a verdict about everything that only a GPU can show. table.go lists the checks. With
// arguments it runs only the checks whose names contain one of them.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"fluentps/kernels/gpucheck"
)

// limitVar says how many seconds all checks together may take.
const limitVar = "GPU_CHECK_SECONDS"

const defaultLimit = 600 * time.Second

func main() {
	if name := os.Getenv(gpucheck.CheckVar); name != "" {
		os.Exit(child(name))
	}
	limit, err := limitOf(os.Getenv(limitVar))
	if err != nil {
		fmt.Fprintln(os.Stderr, "gpu-check:", err)
		os.Exit(2)
	}
	os.Exit(verdict(os.Stdout, os.Stderr, limit, os.Args[1:]))
}

func limitOf(text string) (time.Duration, error) {
	if text == "" {
		return defaultLimit, nil
	}
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds < 1 || seconds > 86400 {
		return 0, fmt.Errorf("%s is %q, must be a number of seconds, 1 to 86400", limitVar, text)
	}
	return time.Duration(seconds) * time.Second, nil
}

// child is the process of one check. It returns the exit code.
func child(name string) int {
	if aid := aids[name]; aid != nil {
		if err := aid(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	i := slices.IndexFunc(table, func(c gpucheck.Check) bool { return c.Name == name })
	if i < 0 {
		fmt.Fprintf(os.Stderr, "gpu-check: %s is %q, which is no check\n", gpucheck.CheckVar, name)
		return 2
	}
	report := gpucheck.NewReport(os.Stdout)
	if err := run(table[i], report); err != nil {
		report.Fail(name, table[i].Size(report.Sizes), "%v", err)
		return 1
	}
	return 0
}

// run runs a check. Models panic with the error of a device that fails.
func run(c gpucheck.Check, report *gpucheck.Report) (err error) {
	defer func() {
		if failed, is := recover().(error); is {
			err = failed
		}
	}()
	return c.Run(report)
}

// self starts this program again for an aid of a check.
func self(aid string, env ...string) *exec.Cmd {
	path, err := os.Executable()
	if err != nil {
		path = os.Args[0]
	}
	cmd := exec.Command(path)
	cmd.Env = append(append(os.Environ(), env...), gpucheck.CheckVar+"="+aid)
	return cmd
}

// failure is the error of a program that was started, with the last line that it wrote.
func failure(err error, wrote []byte) error {
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) && len(wrote) == 0 {
		wrote = ended.Stderr
	}
	lines := strings.Split(strings.TrimSpace(string(wrote)), "\n")
	return fmt.Errorf("%w: %s", err, lines[len(lines)-1])
}

// beside returns the path of a file that lies beside this program.
func beside(name string) (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	if folder := os.Getenv(folderVar); folder != "" {
		return filepath.Join(folder, name), nil
	}
	return filepath.Join(filepath.Dir(path), name), nil
}

// folderVar names the folder of the other programs that checks start, if they are not beside this one.
const folderVar = "GPU_CHECK_FOLDER"
