// Command inspect reads a run folder for the scripts of tests/accept, so that they need neither jq nor Python.
//
//	inspect get FILE PATH   the value at PATH in a JSON file: names and list indices joined by dots; * takes all
//	                        items, one a line. Text is printed bare, everything else as JSON.
//	inspect intact DIR      every JSON file and JSON line parses, all rows of a CSV file are equally long, text ends
//	                        with a newline, and no temporary file is left.
//	inspect forge FILE PATH VALUE   replaces a value of the configuration in the manifest of a checkpoint, and makes its
//	                        checksum valid again.
//	inspect lead DIR        the largest lead of a worker that the records of a run show.
//	inspect trace FILE      a timeline passes a strict check of its format; counts of what it shows, as one JSON object.
//	inspect table PAGE COMMAND FILE SHARE   the table behind COMMAND in PAGE is the one in FILE, numbers within SHARE; with ACCEPT_UPDATE=1
//	                        it is written into PAGE.
//	inspect tensorboard DIR  the event files of a run folder, read by the description of their format, hold what metrics.jsonl holds.
//	inspect pixels FOLDER COLOR   writes the bytes of the first picture of a folder to standard output, plane by plane.
//	inspect peak PROGRAM COMMAND...  runs a command, and says how much memory its processes of that program took, shared memory
//	                        counted once.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"fluentps/internal/show/metrics/metricstest"
	"fluentps/internal/show/timeline/timelinetest"
	"fluentps/tests/pagetest"
)

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "inspect:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	switch {
	case len(args) == 3 && args[0] == "get":
		data, err := os.ReadFile(args[1])
		if err != nil {
			return err
		}
		lines, err := get(data, args[2])
		if err != nil {
			return fmt.Errorf("%s: %w", args[1], err)
		}
		fmt.Println(strings.Join(lines, "\n"))
		return nil
	case len(args) == 3 && args[0] == "pixels":
		return pixels(args[1], args[2])
	case len(args) == 2 && args[0] == "intact":
		files, err := intact(os.DirFS(args[1]))
		if err != nil {
			return fmt.Errorf("%s: %w", args[1], err)
		}
		fmt.Printf("intact: %d files\n", files)
		return nil
	case len(args) == 4 && args[0] == "forge":
		data, err := os.ReadFile(args[1])
		if err == nil {
			data, err = forge(data, args[2], args[3])
		}
		if err == nil {
			err = os.WriteFile(args[1], data, 0o666)
		}
		return err
	case len(args) == 2 && args[0] == "lead":
		return lead(args[1])
	case len(args) == 2 && args[0] == "trace":
		return traced(args[1])
	case len(args) == 2 && args[0] == "tensorboard":
		return sameEvents(args[1])
	case len(args) == 5 && args[0] == "table":
		return sameTable(args[1], args[2], args[3], args[4])
	case len(args) >= 3 && args[0] == "peak":
		return peak(args[1], args[2:])
	}
	return fmt.Errorf("usage: inspect get FILE PATH | intact DIR | forge FILE PATH VALUE | lead DIR | trace FILE | "+
		"tensorboard DIR | table PAGE COMMAND FILE SHARE | peak PROGRAM COMMAND...; got %q", args)
}

func sameTable(page, command, file, share string) error {
	made, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	within, err := strconv.ParseFloat(share, 64)
	if err != nil {
		return err
	}
	if os.Getenv("ACCEPT_UPDATE") != "" {
		return pagetest.Rewrite(page, command, string(made))
	}
	return pagetest.Compare(page, command, string(made), within)
}

// sameEvents compares the event files of a run folder with its metrics.jsonl.
func sameEvents(dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "tb", "*tfevents*"))
	if err != nil {
		return err
	}
	var files [][]byte
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files = append(files, data)
	}
	events, err := metricstest.ReadEvents(files...)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		return err
	}
	if err := metricstest.SameAsJSONL(events, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), time.Time{}); err != nil {
		return err
	}
	fmt.Printf("tensorboard: %d events in %d files\n", len(events), len(files))
	return nil
}

// traced checks a timeline, and prints what it shows.
func traced(path string) error {
	t, err := timelinetest.Read(path)
	if err != nil {
		return err
	}
	aligned, errorUs := 0, 0.0
	for _, c := range t.Clocks {
		if errorUs = max(errorUs, c.ErrorUs); c.Aligned {
			aligned++
		}
	}
	text, err := json.Marshal(struct {
		timelinetest.Figures
		Aligned int     // ranks
		ErrorUs float64 // the largest of a clock
		Closed  bool    // it is a whole trace, not the part of a rank
	}{t.Figures(), aligned, errorUs, t.Closed})
	fmt.Println(string(text))
	return err
}

// forge changes a manifest and its last member, the checksum of the text before it.
func forge(data []byte, path, value string) ([]byte, error) {
	const sum = "crc32c"
	var manifest map[string]any
	if err := json.Unmarshal(data, &manifest); err != nil || manifest[sum] == nil {
		return nil, fmt.Errorf("it is not the manifest of a checkpoint: %v", err)
	}
	delete(manifest, sum)
	config, ok := manifest["config"].(map[string]any)
	if !ok {
		return nil, errors.New("the manifest has no config")
	}
	config[path] = value
	body, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return nil, err
	}
	body = bytes.TrimSuffix(body, []byte("\n}"))
	return fmt.Appendf(body, ",\n  \"%s\": \"%08x\"\n}\n", sum, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli))), nil
}

// get returns the values at path, one for each item that a * stands for.
func get(data []byte, path string) ([]string, error) {
	var root any
	if err := json.Unmarshal(data, &root); err != nil {
		return nil, err
	}
	values := []any{root}
	for _, name := range strings.Split(path, ".") {
		var next []any
		for _, value := range values {
			inner, err := step(value, name)
			if err != nil {
				return nil, fmt.Errorf("path %s: %w", path, err)
			}
			next = append(next, inner...)
		}
		values = next
	}
	lines := make([]string, len(values))
	for k, value := range values {
		if text, ok := value.(string); ok {
			lines[k] = text
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		lines[k] = string(text)
	}
	return lines, nil
}

func step(value any, name string) ([]any, error) {
	switch at := value.(type) {
	case map[string]any:
		if inner, ok := at[name]; ok {
			return []any{inner}, nil
		}
		return nil, fmt.Errorf("no field %s", name)
	case []any:
		if name == "*" {
			return at, nil
		}
		k, err := strconv.Atoi(name)
		if err != nil || k < 0 || k >= len(at) {
			return nil, fmt.Errorf("no item %s in a list of %d", name, len(at))
		}
		return at[k : k+1], nil
	}
	return nil, fmt.Errorf("%s of %v, which is neither object nor list", name, value)
}
