package runtime

import (
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/plan/layout"
	"fluentps/internal/show/timeline"
)

// openTimeline makes the recorder of this rank, if the configuration asks for a timeline, and begins the rank's part in the run folder. A
// host that does not share the file system has no part; its spans reach rank 0 at the end.
func (r *rank) openTimeline() error {
	st := r.station
	if !st.Config.Metrics.Trace || r.run.Folder == nil {
		return nil
	}
	var folderErr error
	if st.Me == 0 {
		if err := timeline.Join(r.run.Folder.Folder, st.Config.Name); err != nil {
			st.Log.Warn("the timeline of a part of the run that was killed stays in parts", "error", err)
		}
		in := r.run.Folder.MakeIn(timeline.Folder, 0o777)
		folderErr = in.Err()
		in.Close()
	}
	if err := st.Net.Agree(folderErr, CodeFailed); err != nil {
		return err
	}
	names := timeline.NamesOf(st.Plan, len(st.Roles.Workers))
	t := &timeline.Recording{Rank: timeline.NewRank(st.Me, names, layout.Timeline(st.Config, st.Plan, st.Roles), st.Transport.Now)}
	t.Clock.Error = clockError(st.Transport)
	t.Clock.Align(0)
	if r.run.From != nil {
		t.Start = r.run.From.Manifest.Iteration
	}
	r.run.Timeline = t
	about := timeline.About{Role: st.Roles.Name(st.Me), Host: st.Hosts[st.Me], Clock: t.Clock}
	in := r.run.Folder.In(timeline.Folder)
	part, err := timeline.OpenPart(in, timeline.PartName(t.Start, st.Me), t.Rank, about)
	in.Close()
	if err != nil {
		st.Log.Warn("this rank writes its timeline only at the end", "error", err)
		return nil
	}
	t.Part = part
	return nil
}

// clockError bounds the error of this rank's clock.
func clockError(t comm.Transport) time.Duration {
	if c, ok := t.(comm.Clocked); ok {
		return c.ClockError()
	}
	return 0
}
