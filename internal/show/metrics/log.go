package metrics

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"fluentps/internal/disk/foreign"
)

// LogSpec says which rank logs, and where its messages go.
type LogSpec struct {
	Rank   int
	Role   string     // worker, server, or both
	Tag    string     // the prefix in [ ] on stderr, such as w7 or s0
	Host   string     // name of the machine
	Level  slog.Level // lowest level that File gets
	File   io.Writer  // JSON lines; nil: none
	Stderr io.Writer  // plain text from WARN up; nil: none
}

// LogName is the path of a rank's log in the run folder: logs/rank-0007.log.
func LogName(rank int) string { return filepath.Join("logs", fmt.Sprintf("rank-%04d.log", rank)) }

// OpenLog opens the log of a rank in the folder, which rank 0 has made with CreateRunFolder. The file is opened for appending
// and every line is one Write, so the lines of a restarted job never mix.
func (f *RunFolder) OpenLog(rank int) (*os.File, error) {
	file, err := f.Append(LogName(rank))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("log of rank %d: %w; is the run folder on a file system that all hosts share?", rank, err)
	case err != nil:
		return nil, fmt.Errorf("log of rank %d: %w", rank, err)
	}
	return file, nil
}

// NewLogger returns the logger of one rank. It writes JSON lines with rank, role and host to File, and lines such as
// `[w7] WARN: message key=value` to Stderr. Every message is one Write. Many goroutines may use the logger.
func NewLogger(s LogSpec) *slog.Logger {
	var handlers []slog.Handler
	if s.File != nil {
		h := slog.NewJSONHandler(s.File, &slog.HandlerOptions{Level: s.Level})
		handlers = append(handlers, h.WithAttrs([]slog.Attr{
			slog.Int("rank", s.Rank), slog.String("role", s.Role), slog.String("host", s.Host)}))
	}
	if s.Stderr != nil {
		handlers = append(handlers, newPlain(s.Stderr, s.Tag))
	}
	return slog.New(slog.NewMultiHandler(handlers...))
}

// plain writes messages for people. The attributes are formatted by slog's own text handler, into out.buf.
type plain struct {
	out   *plainOut
	attrs slog.Handler
}

// plainOut is the output that a handler shares with all handlers that With derived from it.
type plainOut struct {
	mu  sync.Mutex
	w   io.Writer
	tag string
	buf bytes.Buffer // the formatted attributes of the current message
}

func newPlain(w io.Writer, tag string) *plain {
	out := &plainOut{w: w, tag: tag}
	return &plain{out: out, attrs: slog.NewTextHandler(&out.buf, nil)}
}

// Enabled lets WARN and up through.
func (h *plain) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle writes the message in one Write. Each of its lines begins with the tag.
func (h *plain) Handle(ctx context.Context, r slog.Record) error {
	o := h.out
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf.Reset()
	// A record without time and text leaves `level=WARN msg=""` and then the attributes.
	bare := slog.NewRecord(time.Time{}, r.Level, "", 0)
	lines := "" // attributes of several lines, such as the traceback of a script, which nobody could read on one line
	r.Attrs(func(a slog.Attr) bool {
		if value := a.Value.Resolve().String(); strings.Contains(value, "\n") {
			lines += " " + a.Key + ": " + value
		} else {
			bare.AddAttrs(a)
		}
		return true
	})
	if err := h.attrs.Handle(ctx, bare); err != nil {
		return err
	}
	attrs := strings.TrimPrefix(o.buf.String(), "level="+r.Level.String()+` msg=""`)
	text := r.Level.String() + ": " + r.Message + strings.TrimSuffix(attrs, "\n") + lines
	tag := "[" + o.tag + "] "
	_, err := io.WriteString(o.w, tag+strings.ReplaceAll(foreign.Visible(text), "\n", "\n"+tag)+"\n")
	return err
}

// WithAttrs is part of slog.Handler.
func (h *plain) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &plain{out: h.out, attrs: h.attrs.WithAttrs(attrs)}
}

// WithGroup is part of slog.Handler.
func (h *plain) WithGroup(name string) slog.Handler {
	return &plain{out: h.out, attrs: h.attrs.WithGroup(name)}
}
