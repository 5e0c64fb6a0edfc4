package metrics

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"fluentps/ps/durable"
)

// Who owns a run folder can change and remove what is in it at any time, checkpoints that are read again as well; so can
// whoever else may write it. Groups that share the folder of a project do so on purpose.

// admit refuses a folder that its owner, or anybody, could use against this process, and warns of one that others may write.
func (f *RunFolder) admit() error {
	owner, err := f.Owner()
	if err != nil {
		return folderError(f.Dir, err)
	}
	whose := fmt.Sprintf("%s belongs to %s", f.Dir, owner)
	switch {
	case !owner.Mine && os.Geteuid() == 0:
		return fmt.Errorf("run folder: %s, and root goes into no other user's; run as that user, or choose another folder with --out, which may be a new one in it", whose)
	case !owner.Mine && owner.Public:
		return fmt.Errorf("run folder: %s, and anybody may write it; choose another folder with --out, which may be a new one in it", whose)
	case !owner.Mine:
		f.Warnings = append(f.Warnings, "the run folder "+whose+", who can change what this run writes, and what a run reads that goes on here")
	case owner.Public:
		f.Warnings = append(f.Warnings, fmt.Sprintf("anybody may write the run folder %s, and so change results and checkpoints: chmod o-w %s, and umask 022 before the next run", f.Dir, f.Dir))
	}
	return nil
}

// RunFolders lists the folders below Root/Name that runs of this user's were given by that name, the newest first, and how many
// there are of other users, which anybody may make who may write there.
func RunFolders(s FolderSpec) (dirs []string, others int) {
	parent := durable.Below(filepath.Join(s.Root, s.Name))
	defer parent.Close()
	entries, err := parent.List()
	if err != nil {
		return nil, 0 // there are none yet, or the new run will say why it can make none
	}
	for _, e := range slices.Backward(entries) { // by name, which begins with the time
		if !e.IsDir() {
			continue
		}
		if owner, err := parent.OwnerOf(e.Name()); err != nil || !owner.Mine {
			others++
			continue
		}
		dirs = append(dirs, parent.Path(e.Name()))
	}
	return dirs, others
}

// OthersText says that run folders of others were passed over.
func OthersText(s FolderSpec, others int) string {
	return fmt.Sprintf("resume: %d run folders in %s belong to other users and are passed over; --resume DIR goes on in one of them", others, filepath.Join(s.Root, s.Name))
}
