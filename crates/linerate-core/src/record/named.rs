//! Choices that flags, files and records know by name.

/// Gives an enum its names, in the order in which a refusal lists them: `ALL`, `name`, `Display`
/// and `FromStr`.
macro_rules! named {
    ($choice:ident { $($variant:ident = $name:literal),+ $(,)? }) => {
        impl $choice {
            /// Every variant, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Name in flags, files and records.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }

        impl std::fmt::Display for $choice {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $choice {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let found = Self::ALL.iter().copied().find(|variant| variant.name() == text);
                found.ok_or_else(|| format!("one of {}", [$($name),+].join(", ")))
            }
        }
    };
}

pub(crate) use named;
