//! The pages of the commands of a mesh.

use super::page::HelpPage;

pub(super) const MESH_PAGES: &[HelpPage] = &[
    HelpPage {
        command: "mesh",
        shown: &[],
        examples: &[
            ("linerate mesh check campus.toml", "the slots of a plan"),
            ("linerate mesh status", "the matrix, on the hub"),
        ],
        see: &["agent", "serve", "schedule"],
    },
    HelpPage {
        command: "mesh archive",
        shown: &[],
        examples: &[
            ("linerate mesh archive 2026-11-25 --into /srv/days", "campus-2026-11-25.parquet"),
            ("linerate mesh archive yesterday --into . --drop", "the store has it no more"),
        ],
        see: &["mesh status", "history"],
    },
    HelpPage {
        command: "mesh check",
        shown: &[],
        examples: &[
            ("linerate mesh check campus.toml", "slots, beside the least possible"),
            ("linerate mesh check campus.toml --all", "who measures whom, and when"),
            ("linerate mesh check campus.toml --json", "for other programs"),
        ],
        see: &["mesh sign"],
    },
    HelpPage {
        command: "mesh import",
        shown: &[],
        examples: &[
            ("linerate mesh import campus.json > campus.toml", "from a template of psConfig"),
            ("linerate mesh import campus.json --name campus", "the mesh has that name"),
        ],
        see: &["mesh check"],
    },
    HelpPage {
        command: "mesh key",
        shown: &[],
        examples: &[
            ("linerate mesh key mesh.key", "once, and kept away from the hub"),
            ("linerate mesh key /media/usb/mesh.key", "where no network leads to"),
        ],
        see: &["mesh sign"],
    },
    HelpPage {
        command: "mesh sign",
        shown: &[],
        examples: &[
            ("linerate mesh sign campus.toml --key mesh.key", "writes campus.toml.sig"),
            ("linerate mesh sign campus.toml --key /media/usb/mesh.key", "by a key elsewhere"),
        ],
        see: &["mesh check", "mesh key", "serve"],
    },
    HelpPage {
        command: "mesh token",
        shown: &[],
        examples: &[
            ("linerate mesh token north --plan campus.toml", "for the agent north, on the hub"),
            ("linerate mesh token north --plan campus.toml --within 1h", "for an hour"),
        ],
        see: &["agent"],
    },
    HelpPage {
        command: "mesh run",
        shown: &[],
        examples: &[
            ("linerate mesh run 'tcp south -t5' --from north", "on the hub: books the first gap"),
            ("linerate mesh run 'tcp south -t5' --from north --result", "waits for it"),
        ],
        see: &["mesh status", "mesh check"],
    },
    HelpPage {
        command: "mesh status",
        shown: &[],
        examples: &[
            ("linerate mesh status", "the matrix; exit code 1: in alert"),
            ("linerate mesh status campus --json", "for other programs"),
        ],
        see: &["serve", "history"],
    },
    HelpPage {
        command: "agent",
        shown: &[],
        examples: &[
            ("linerate agent --join https://hub.example --token lrm1...", "the first time"),
            ("linerate agent --join https://hub.example", "later"),
        ],
        see: &["mesh token", "serve", "schedule run"],
    },
];
