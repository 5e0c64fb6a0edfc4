package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// intact counts the files of a run folder. It fails with a list of the files that are half-written.
func intact(fsys fs.FS) (files int, err error) {
	var problems []error
	err = fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		files++
		if err := whole(name, data); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
		return nil
	})
	return files, errors.Join(append(problems, err)...)
}

func whole(name string, data []byte) error {
	base, ext := path.Base(name), path.Ext(name)
	switch {
	case ext == ".tmp" || ext == ".new" || strings.HasSuffix(base, "~"):
		return errors.New("a temporary file was left behind")
	case ext == ".bin": // part of a checkpoint: a resumed run checks it against the checksums in the manifest
		return nil
	case len(data) > 0 && !bytes.HasSuffix(data, []byte("\n")):
		return errors.New("the last line is cut off")
	case ext == ".json":
		return json.Unmarshal(data, new(any))
	case ext == ".jsonl" || ext == ".log":
		for k, line := range bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")) {
			if len(line) > 0 && !json.Valid(line) {
				return fmt.Errorf("line %d is not JSON: %.60s", k+1, line)
			}
		}
	case ext == ".csv":
		_, err := csv.NewReader(bytes.NewReader(data)).ReadAll() // says which row differs in length from the first
		return err
	}
	return nil
}
