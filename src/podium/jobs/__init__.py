"""Jobs: pipeline, operator, sense, playbook, duet and rehearsal, each whole in its folder."""
