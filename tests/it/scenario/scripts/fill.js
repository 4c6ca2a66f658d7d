// Lays lines down to be imported; every tenth has a mail address that the one before it has too.
V8.FormEngine.AddFormData('imports', { Id: V8.Param.ImportId, State: 'New' });
for (var no = 1; no <= V8.Param.Lines; no++) {
  var mail = no % 10 === 0 ? no - 1 : no;
  var added = V8.FormEngine.AddFormData('import_lines', {
    Id: V8.Param.ImportId + '-' + no, ImportId: V8.Param.ImportId, No: no, State: 'Pending',
    Json: { Name: 'Name ' + no, Mail: 'm' + mail + '@example.com' }
  });
  if (added.Code !== 1) return added;
}
return { Code: 1, Data: { Lines: V8.Param.Lines } };
