//! What the name and the password of a user may be, and which tenant goes with which role.
//!
//! Each refusal is a sentence that names the field and the limit. A password is never part of one.

use super::principal::Role;

/// The longest name, characters.
pub const NAME_CHARS: usize = 100;
/// The shortest password, characters.
pub const PASSWORD_CHARS: usize = 8;
/// The longest password, bytes.
pub const PASSWORD_BYTES: usize = 1_024;

/// Whether a person may be called so.
///
/// # Errors
/// The rule that is broken.
pub fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.chars().count() > NAME_CHARS {
        return Err(format!("the name must have 1 to {NAME_CHARS} characters"));
    }
    if name.trim() != name || name.chars().any(char::is_control) {
        return Err("the name must not begin or end with a space, nor hold control characters".into());
    }
    Ok(())
}

/// Whether a text may be a password. What is in it is the person's affair.
///
/// # Errors
/// The rule that is broken.
pub fn check_password(password: &str) -> Result<(), String> {
    if password.chars().count() < PASSWORD_CHARS {
        return Err(format!("the password must have at least {PASSWORD_CHARS} characters"));
    }
    if password.len() > PASSWORD_BYTES {
        return Err(format!("the password must have at most {PASSWORD_BYTES} bytes"));
    }
    Ok(())
}

/// Whether somebody of this role can belong to this tenant.
///
/// # Errors
/// The rule that is broken.
pub fn check_tenant(tenant: &str, role: Role) -> Result<(), String> {
    if tenant.is_empty() || tenant.chars().count() > NAME_CHARS || tenant.chars().any(char::is_control) {
        return Err(format!("the tenant must have 1 to {NAME_CHARS} characters, and no control characters"));
    }
    if tenant == "*" && role != Role::Platform {
        return Err("the tenant * is for the role platform only".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_passwords_are_taken_at_their_limits_and_refused_beyond_with_the_limit() {
        assert!(check_name(&"名".repeat(NAME_CHARS)).is_ok() && check_name("o'neil <b>").is_ok());
        for name in ["", " a", "a\n", "a\u{0}b", &"x".repeat(NAME_CHARS + 1)] {
            assert!(check_name(name).unwrap_err().contains("the name"), "{name:?}");
        }
        assert!(check_password("12345678").is_ok() && check_password(&"x".repeat(PASSWORD_BYTES)).is_ok());
        assert!(check_password("密码密码密码密").unwrap_err().contains("at least 8"));
        assert!(check_password(&"x".repeat(PASSWORD_BYTES + 1)).unwrap_err().contains("1024 bytes"));
    }

    #[test]
    fn the_tenant_of_all_is_for_the_platform_only() {
        assert!(check_tenant("*", Role::Platform).is_ok() && check_tenant("t", Role::Admin).is_ok());
        assert!(check_tenant("*", Role::Admin).is_err() && check_tenant("", Role::User).is_err());
    }
}
