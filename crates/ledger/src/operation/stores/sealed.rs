//! What stores have sealed, for changes of the master key.

use toolgate_gate::ports::ledger::SealedVersion;
use toolgate_gate::ports::sealer::{MasterKeyId, SealBinding, SealSubject};
use toolgate_model::id::{ItemId, StoreId};
use toolgate_model::principal::TenantId;

use super::read_material;
use crate::sql::{Failure, Row, SqlError};
use crate::transaction::{Transaction, values};

fn read(row: &Row, subject: impl Fn(&str) -> Option<SealSubject>) -> Result<SealedVersion, SqlError> {
    let subject = row.parsed(0, |id| subject(id).ok_or(()))?;
    let binding = SealBinding { tenant: row.parsed(1, TenantId::parse)?, subject };
    Ok(SealedVersion { binding, sealed: read_material(row, 2)? })
}

/// Keys of indexes that another master key wraps, after this id.
pub async fn stores<T: Transaction>(
    transaction: &mut T,
    current: &MasterKeyId,
    after: &str,
    limit: u32,
) -> Result<Vec<SealedVersion>, Failure> {
    let sql = "SELECT id, tenant, ciphertext, wrapped_key, master_key FROM stores WHERE master_key <> $1 \
         AND master_key IS NOT NULL AND id > $2 ORDER BY id LIMIT $3";
    let rows = transaction.query(sql, values![current.0.as_str(), after, limit]).await?;
    let subject = |id: &str| Some(SealSubject::Store { id: StoreId::parse(id).ok()? });
    Ok(rows.iter().map(|row| read(row, subject)).collect::<Result<_, _>>()?)
}

/// Items that another master key wraps, after this id. Those of removed stores go with them.
pub async fn items<T: Transaction>(
    transaction: &mut T,
    current: &MasterKeyId,
    after: &str,
    limit: u32,
) -> Result<Vec<SealedVersion>, Failure> {
    let sql = "SELECT i.id, s.tenant, i.ciphertext, i.wrapped_key, i.master_key FROM store_items AS i \
         JOIN stores AS s ON s.id = i.store WHERE i.master_key <> $1 AND i.id > $2 ORDER BY i.id LIMIT $3";
    let rows = transaction.query(sql, values![current.0.as_str(), after, limit]).await?;
    let subject = |id: &str| Some(SealSubject::Item { id: ItemId::parse(id).ok()? });
    Ok(rows.iter().map(|row| read(row, subject)).collect::<Result<_, _>>()?)
}
