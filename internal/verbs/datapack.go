package verbs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"fluentps/internal/disk/foreign"
	"fluentps/internal/show/metrics"
	"fluentps/ps/workload/dataset"
)

func dataPackCommand() *cli.Command {
	return &cli.Command{
		Name:      "pack",
		Usage:     "write a data set as one file that all ranks of a host map",
		ArgsUsage: "CONFIG | SET PATH",
		Description: "The file has the rows as they are trained on: bytes of images stay bytes, texts are numbered, and test rows are\n" +
			"split off. data: {set: packed, path: FILE} trains on it, to the same bits. It is read by pages, so it may be\n" +
			"larger than memory, and each block has a checksum.\n" + precedence,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "out", Usage: "write the set to `FILE`, such as set.fps"},
			&cli.BoolFlag{Name: "force", Usage: "replace the file of --out if it exists"},
			&cli.StringFlag{Name: "test", Usage: "test `FILE` of csv, libsvm, ratings and images; with SET PATH only"},
			setFlag(),
		},
		Action: dataPackVerb,
	}
}

func dataPackVerb(c *cli.Context) error {
	out := c.String("out")
	if out == "" {
		return usagef("data pack: name the file to write, as in --out set.fps")
	}
	spec, err := dataSpec(c)
	if err != nil {
		return err
	}
	if err := checkNew("data pack: --out", out, c.Bool("force")); err != nil {
		return err
	}
	spec.Pictures.Stream = spec.Set == "images"
	set, err := dataset.Load(spec)
	if err != nil {
		return &exitError{codeUsage, err.Error()}
	}
	noteData(c, set.Notes)
	if err := notSource(out, set); err != nil {
		return err
	}
	draft, err := newDraft(out)
	if err != nil {
		return fmt.Errorf("data pack: %w", err)
	}
	shown := time.Now()
	sum, err := set.Pack(draft.File, "fluentps "+buildText(), func(rows, all int) {
		if time.Since(shown) >= packShown {
			shown = time.Now()
			fmt.Fprintf(c.App.ErrWriter, "packed %d of %d rows\n", rows, all)
		}
	})
	var size int64
	if err == nil {
		size, err = draft.Seek(0, io.SeekCurrent)
	}
	if err := draft.end(err, c.Bool("force")); err != nil {
		return fmt.Errorf("data pack: %s: %w", foreign.Text(out), err)
	}
	regress := ""
	if set.Targets != (dataset.Targets{}) {
		regress = ", task: regress"
	}
	_, err = fmt.Fprintf(c.App.Writer, "%s: %d training rows, %d test rows, %s, sha256 of the index %s\n  data: {set: packed, path: %s%s}\n",
		foreign.Text(out), set.Train.Rows(), set.Test.Rows(), metrics.Size(size), sum, foreign.Word(out), regress)
	return err
}

// packShown is how often the progress of packing is shown.
const packShown = 5 * time.Second

// notSource fails if the file to write is one that the set is read from.
func notSource(out string, set *dataset.Set) error {
	there, err := os.Stat(out)
	if err != nil {
		return nil // there is none
	}
	for _, f := range set.Files {
		if from, err := os.Stat(f.Path); err == nil && os.SameFile(there, from) {
			return usagef("data pack: --out %s is a file of the set itself; name another file", foreign.Text(out))
		}
	}
	return nil
}

// packDraft is the new file under a name of its own: several programs may write the same file, and the first that ends has it.
type packDraft struct {
	*os.File
	out     string
	stopped chan os.Signal
}

func newDraft(out string) (*packDraft, error) {
	f, err := os.CreateTemp(filepath.Dir(out), "."+filepath.Base(out)+".*.new")
	if err != nil {
		return nil, err
	}
	d := &packDraft{File: f, out: out, stopped: make(chan os.Signal, 1)}
	signal.Notify(d.stopped, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		if s, ok := <-d.stopped; ok {
			_ = os.Remove(f.Name()) // the process ends in any case
			number, _ := s.(syscall.Signal)
			os.Exit(128 + int(number))
		}
	}()
	return d, nil
}

// end gives the file its name, unless err is set. Without force it replaces none.
func (d *packDraft) end(err error, force bool) error {
	signal.Stop(d.stopped)
	close(d.stopped)
	if err == nil {
		err = errors.Join(d.Chmod(0o644), d.Sync())
	}
	err = errors.Join(err, d.Close())
	switch {
	case err != nil:
	case force:
		return os.Rename(d.Name(), d.out)
	default:
		if err = os.Link(d.Name(), d.out); errors.Is(err, fs.ErrExist) {
			err = errors.New("another program has written it meanwhile; name another file, or replace it with --force")
		} else if err != nil { // a file system without links
			return os.Rename(d.Name(), d.out)
		}
	}
	return errors.Join(err, os.Remove(d.Name()))
}
